package flight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sheaf-db/sheaf/ingest"
)

// putClient is a client's side of one DoPut.
type putClient struct {
	t      *testing.T
	stream flight.FlightService_DoPutClient
	cancel context.CancelFunc
}

func (w *world) doPut() *putClient {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	stream, err := w.client.DoPut(ctx)
	require.NoError(w.t, err)
	w.t.Cleanup(cancel)
	return &putClient{w.t, stream, cancel}
}

// captured collects messages instead of sending them.
type captured []*flight.FlightData

func (c *captured) Send(data *flight.FlightData) error {
	*c = append(*c, &flight.FlightData{
		FlightDescriptor: data.FlightDescriptor,
		DataHeader:       append([]byte(nil), data.DataHeader...),
		DataBody:         append([]byte(nil), data.DataBody...),
	})
	return nil
}

func path(parts ...string) *flight.FlightDescriptor {
	return &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: parts}
}

func command(text string) *flight.FlightDescriptor {
	return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(text)}
}

// messagesOf is what a client sends: the schema with the descriptor, then a
// message or more for each batch of JSON rows.
func messagesOf(t *testing.T, descriptor *flight.FlightDescriptor, schema *arrow.Schema, batches ...string) captured {
	t.Helper()
	var sent captured
	writer := flight.NewRecordWriter(&sent, ipc.WithSchema(schema), ipc.WithDictionaryDeltas(true))
	writer.SetFlightDescriptor(descriptor)
	for _, text := range batches {
		batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+text+"]"))
		require.NoError(t, err)
		require.NoError(t, writer.Write(batch))
		batch.Release()
	}
	require.NoError(t, writer.Close())
	return sent
}

// send sends messages; that the stream has ended is no error here.
func (p *putClient) send(messages ...*flight.FlightData) {
	p.t.Helper()
	for _, message := range messages {
		if err := p.stream.Send(message); err != nil {
			require.ErrorIs(p.t, err, io.EOF)
			return
		}
	}
}

// finish ends the stream and reads what the server said.
func (p *putClient) finish() ([]ingest.Progress, error) {
	p.t.Helper()
	require.NoError(p.t, p.stream.CloseSend())
	return p.rest()
}

func (p *putClient) rest() ([]ingest.Progress, error) {
	var said []ingest.Progress
	for {
		progress, err := p.next()
		if errors.Is(err, io.EOF) {
			return said, nil
		}
		if err != nil {
			return said, err
		}
		said = append(said, progress)
	}
}

func (p *putClient) next() (ingest.Progress, error) {
	result, err := p.stream.Recv()
	if err != nil {
		return ingest.Progress{}, err
	}
	var fields map[string]uint64
	require.NoError(p.t, json.Unmarshal(result.AppMetadata, &fields))
	require.Len(p.t, fields, 3)
	return ingest.Progress{Batches: fields["batches"], Rows: fields["rows"], Commit: fields["commit"]}, nil
}

// doPutAll sends one stream and returns the last acknowledgement.
func (w *world) doPutAll(descriptor *flight.FlightDescriptor, schema *arrow.Schema, batches ...string) (ingest.Progress, error) {
	w.t.Helper()
	p := w.doPut()
	p.send(messagesOf(w.t, descriptor, schema, batches...)...)
	said, err := p.finish()
	if len(said) == 0 {
		return ingest.Progress{}, err
	}
	return said[len(said)-1], err
}

// keyed is tripsSchema with its keys in the metadata.
func keyed() *arrow.Schema {
	metadata := arrow.NewMetadata([]string{"sheaf.sharding_key", "sheaf.sorting_key"}, []string{"k", `["s"]`})
	return arrow.NewSchema(tripsSchema.Fields(), &metadata)
}

func trip(k string, s, v int) string { return fmt.Sprintf(`{"k":%q,"s":%d,"v":%d}`, k, s, v) }

func TestPutMakesTheTableAndAcknowledges(t *testing.T) {
	w := newWorld(t, Options{})
	progress, err := w.doPutAll(path("t"), keyed(), trip("a", 1, 1)+","+trip("a", 2, 2), "", trip("b", 1, 3))
	require.NoError(t, err)
	require.Equal(t, uint64(3), progress.Batches)
	require.Equal(t, uint64(3), progress.Rows)
	require.NotZero(t, progress.Commit)
	require.Equal(t, []string{"a 1 1", "a 2 2", "b 1 3"}, w.rows(`{"table":"t","order":"asc"}`))

	for _, descriptor := range []*flight.FlightDescriptor{
		path("t"), path("main", "t"), path("main.t"), command(`{"table":"t"}`), command(` {"table":"main.t","mode":"insert_ignore"} `),
	} {
		_, err := w.doPutAll(descriptor, tripsSchema, trip("b", 1, 3))
		require.NoError(t, err)
	}
	_, err = w.doPutAll(command(`{"table":"t","mode":"delete"}`), tripsSchema, trip("a", 1, 0))
	require.NoError(t, err)
	_, err = w.doPutAll(command(`{"table":"n.made","sharding_key":["s"],"sorting_key":[],"slices":4}`), keyed(), trip("a", 1, 1))
	require.NoError(t, err)
	require.Equal(t, []string{"a 2 2", "b 1 3"}, w.rows(`{"table":"t","order":"asc"}`))
	require.Equal(t, []string{"a 1 1"}, w.rows(`{"table":"n.made"}`))
}

func TestPutWithoutBatches(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.doPut()
	p.send(messagesOf(t, path("t"), keyed())...)
	said, err := p.finish()
	require.NoError(t, err)
	require.Equal(t, []ingest.Progress{{}}, said)
	require.Empty(t, w.rows(`{"table":"t"}`))

	_, err = w.doPut().finish()
	fails(t, err, codes.InvalidArgument, "STREAM_EMPTY")
	p = w.doPut()
	p.send(&flight.FlightData{FlightDescriptor: path("t"), AppMetadata: []byte("x")})
	_, err = p.finish()
	fails(t, err, codes.InvalidArgument, "STREAM_EMPTY")
	p = w.doPut()
	p.cancel()
	_, err = p.rest()
	require.Equal(t, codes.Canceled, status.Code(err))
	require.Empty(t, w.rows(`{"table":"t"}`)) // the server lives
}

func TestPutDescriptorsThatAreRefused(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", `[]`)
	for _, c := range []struct {
		descriptor *flight.FlightDescriptor
		code       codes.Code
		reason     string
	}{
		{nil, codes.InvalidArgument, "DESCRIPTOR_INVALID"},
		{path(), codes.InvalidArgument, "DESCRIPTOR_INVALID"},
		{path("a", "b", "c"), codes.InvalidArgument, "DESCRIPTOR_INVALID"},
		{path("no name"), codes.InvalidArgument, "NAME_INVALID"},
		{path("missing"), codes.NotFound, "TABLE_NOT_FOUND"},
		{&flight.FlightDescriptor{}, codes.InvalidArgument, "DESCRIPTOR_INVALID"},
		{command(``), codes.InvalidArgument, "REQUEST_INVALID"},
		{command(`t`), codes.InvalidArgument, "REQUEST_INVALID"},
		{command(`{"mode":"upsert"}`), codes.InvalidArgument, "FIELD_MISSING"},
		{command(`{"table":"t","mode":"put"}`), codes.InvalidArgument, "MODE_UNKNOWN"},
		{command(`{"table":"t","modes":"upsert"}`), codes.InvalidArgument, "FIELD_UNKNOWN"},
		{command(`{"table":"t","ttl":"1h"}`), codes.Unimplemented, "NOT_IMPLEMENTED"},
		{command(`{"table":"t","slices":0}`), codes.InvalidArgument, "FIELD_INVALID"},
		{command(`{"table":"t","sorting_key":["v"]}`), codes.FailedPrecondition, "KEY_CONFLICT"},
	} {
		_, err := w.doPutAll(c.descriptor, tripsSchema, trip("a", 1, 1))
		fails(t, err, c.code, c.reason)
		require.NotContains(t, err.Error(), "durable")
	}
	require.Empty(t, w.rows(`{"table":"t"}`))
}

// The refusal reaches a client that only writes: some write fails, soon.
func TestRefusalReachesAClientThatOnlyWrites(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", `[]`)
	metadata := arrow.NewMetadata([]string{"sheaf.sharding_key"}, []string{"v"})
	big := fmt.Sprintf(`{"k":%q,"s":1,"v":1}`, strings.Repeat("x", 1000))
	sent := messagesOf(t, path("t"), arrow.NewSchema(tripsSchema.Fields(), &metadata), strings.Repeat(big+",", 99)+big)
	p := w.doPut()
	p.send(sent[0])
	failed := false
	for range 10_000 {
		if err := p.stream.Send(sent[1]); err != nil {
			require.ErrorIs(t, err, io.EOF)
			failed = true
			break
		}
	}
	require.True(t, failed, "a gigabyte was written into a stream that was refused")
	_, err := p.rest()
	fails(t, err, codes.FailedPrecondition, "KEY_CONFLICT")
	require.Contains(t, err.Error(), `["k"]`)
	require.Contains(t, err.Error(), `["v"]`)
	require.Empty(t, w.rows(`{"table":"t"}`))
}

// Acknowledgements that nobody reads never stall the stream; read late, the last
// one counts everything.
func TestNobodyReadsTheAcknowledgements(t *testing.T) {
	const batches = 5000
	w := newWorld(t, Options{})
	p := w.doPut()
	sent := messagesOf(t, path("t"), keyed(), trip("a", 1, 1))
	p.send(sent[0])
	for range batches {
		require.NoError(t, p.stream.Send(sent[1]))
	}
	said, err := p.finish()
	require.NoError(t, err)
	require.Equal(t, uint64(batches), said[len(said)-1].Batches)
	require.Equal(t, uint64(batches), said[len(said)-1].Rows)
	for i := range said[1:] {
		require.LessOrEqual(t, said[i].Batches, said[i+1].Batches)
	}
}

// More commits than acknowledgements fit into the unread part of a stream: the
// error still reaches a client that only writes.
func TestErrorBehindUnreadAcknowledgements(t *testing.T) {
	const commits = 1000
	w := newWorld(t, Options{})
	p := w.doPut()
	good := messagesOf(t, path("t"), keyed(), trip("a", 1, 1))
	bad := messagesOf(t, path("t"), keyed(), `{"k":"a","s":null,"v":1}`)
	p.send(good[0], good[1])
	name, err := tableOfPath([]string{"t"})
	require.NoError(t, err)
	for n := range uint64(commits) {
		for {
			table, err := w.store.Table(name)
			if err != nil {
				continue
			}
			snapshot, err := table.Snapshot()
			require.NoError(t, err)
			at := snapshot.Commit()
			snapshot.Release()
			if at > n {
				break
			}
		}
		p.send(good[1])
	}
	p.send(bad[1])
	failed := false
	for range 1_000_000 {
		if p.stream.Send(good[1]) != nil {
			failed = true
			break
		}
	}
	require.True(t, failed)
	_, err = p.rest()
	fails(t, err, codes.InvalidArgument, "KEY_NULL")
	require.Contains(t, err.Error(), fmt.Sprintf("(durable: %d batches, %d rows, commit ", commits+1, commits+1))
}

func TestMessagesWithMetadataOnly(t *testing.T) {
	w := newWorld(t, Options{})
	sent := messagesOf(t, path("t"), keyed(), trip("a", 1, 1), trip("b", 1, 2))
	p := w.doPut()
	note := &flight.FlightData{AppMetadata: []byte("a note")}
	p.send(&flight.FlightData{FlightDescriptor: path("t"), AppMetadata: []byte("first")}, sent[0], note, sent[1], note, note, sent[2], note, &flight.FlightData{})
	said, err := p.finish()
	require.NoError(t, err)
	require.Equal(t, uint64(2), said[len(said)-1].Batches)
	require.Equal(t, []string{"a 1 1", "b 1 2"}, w.rows(`{"table":"t","order":"asc"}`))
}

// What is no whole, valid message ends the stream; what came before it is
// durable, and the error says so.
func TestBrokenMessages(t *testing.T) {
	good := messagesOf(t, path("t"), keyed(), trip("a", 1, 1), trip("b", 1, 2), trip("c", 1, 3))
	for _, c := range []struct {
		name    string
		damage  func(m *flight.FlightData)
		reason  string
		mention string
	}{
		{"body cut off", func(m *flight.FlightData) { m.DataBody = m.DataBody[:8] }, "MESSAGE_INVALID", "cut off"},
		{"header cut off", func(m *flight.FlightData) { m.DataHeader = m.DataHeader[:4] }, "MESSAGE_INVALID", "header"},
		{"body without header", func(m *flight.FlightData) { m.DataHeader = nil }, "MESSAGE_INVALID", "no header"},
		{"a schema again", func(m *flight.FlightData) { m.DataHeader, m.DataBody = good[0].DataHeader, nil }, "MESSAGE_INVALID", "second schema"},
		{"offsets outside", func(m *flight.FlightData) {
			body := append([]byte(nil), m.DataBody...)
			copy(body, []byte{0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0x7F}) // of column k
			m.DataBody = body
		}, "", `column "k"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, Options{})
			beside := w.doPut()
			beside.send(messagesOf(t, path("beside"), keyed())...)
			p := w.doPut()
			broken := &flight.FlightData{DataHeader: good[2].DataHeader, DataBody: good[2].DataBody}
			c.damage(broken)
			p.send(good[0], good[1], broken, good[3])
			_, err := p.finish()
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
			if c.reason != "" {
				fails(t, err, codes.InvalidArgument, c.reason)
			}
			require.ErrorContains(t, err, "batch 1, ")
			require.ErrorContains(t, err, c.mention)
			require.ErrorContains(t, err, "(durable: 1 batches, 1 rows, commit ")
			require.Equal(t, []string{"a 1 1"}, w.rows(`{"table":"t"}`))
			beside.send(messagesOf(t, path("beside"), keyed(), trip("z", 1, 1))[1])
			_, err = beside.finish()
			require.NoError(t, err)
			require.Equal(t, []string{"z 1 1"}, w.rows(`{"table":"beside"}`))
		})
	}
	t.Run("schemas", func(t *testing.T) {
		w := newWorld(t, Options{})
		for _, header := range [][]byte{{1, 2, 3, 4}, good[0].DataHeader[:20], good[1].DataHeader} {
			p := w.doPut()
			p.send(&flight.FlightData{FlightDescriptor: path("t"), DataHeader: header})
			_, err := p.finish()
			fails(t, err, codes.InvalidArgument, "MESSAGE_INVALID")
			require.NotContains(t, err.Error(), "durable")
		}
		_, err := w.doPutAll(path("t"), arrow.NewSchema(nil, nil))
		fails(t, err, codes.InvalidArgument, "SCHEMA_EMPTY")
	})
}

func TestMessageAboveTheLimit(t *testing.T) {
	w := newWorld(t, Options{MaxMessage: 100_000})
	big := fmt.Sprintf(`{"k":"b","s":1,"x":%q}`, strings.Repeat("y", 200_000))
	schema := arrow.NewSchema(append(keyed().Fields()[:2:2], arrow.Field{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true}), nil)
	text := `{"table":"t","sharding_key":["k"]}`
	_, err := w.doPutAll(command(text), schema, `{"k":"a","s":1,"x":"1"}`, big)
	fails(t, err, codes.ResourceExhausted, "MESSAGE_TOO_LARGE")
	require.ErrorContains(t, err, "100000")
	require.ErrorContains(t, err, "smaller")
	require.ErrorContains(t, err, "(durable: 1 batches, 1 rows, commit ")

	// Compressed, the same message is small; it counts as what it becomes.
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+big+"]"))
	require.NoError(t, err)
	for _, option := range []ipc.Option{ipc.WithLZ4(), ipc.WithZstd()} {
		var sent captured
		writer := flight.NewRecordWriter(&sent, ipc.WithSchema(schema), option)
		writer.SetFlightDescriptor(command(text))
		require.NoError(t, writer.Write(batch))
		p := w.doPut()
		p.send(sent...)
		_, err = p.finish()
		fails(t, err, codes.ResourceExhausted, "MESSAGE_TOO_LARGE")
	}
}

func TestFailureInTheLastBatchOfAStream(t *testing.T) {
	w := newWorld(t, Options{})
	var batches []string
	for i := range 49 {
		batches = append(batches, trip("a", i, 1)+","+trip("b", i, 2))
	}
	_, err := w.doPutAll(path("t"), keyed(), append(batches, trip("a", 60, 1)+","+trip("a", 61, 1)+`,{"k":"a","s":null,"v":1}`)...)
	fails(t, err, codes.InvalidArgument, "KEY_NULL")
	require.ErrorContains(t, err, `batch 49, row 2, column "s"`)
	require.ErrorContains(t, err, "(durable: 49 batches, 98 rows, commit ")
	require.Len(t, w.rows(`{"table":"t"}`), 98)
}

func TestDictionariesReplacedAndGrownInAStream(t *testing.T) {
	w := newWorld(t, Options{})
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "d", Type: dictionary, Nullable: true},
		{Name: "x", Type: dictionary, Nullable: true}}, nil)
	made := arrow.NewSchema([]arrow.Field{schema.Field(0), schema.Field(1), {Name: "x", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	w.put("t", made, []string{"k"}, nil, `[]`)
	_, err := w.doPutAll(path("t"), schema,
		`{"k":1,"d":"a","x":"a"},{"k":2,"d":"b","x":null}`,
		`{"k":3,"d":"x","x":"y"},{"k":4,"d":null,"x":"z"}`,
		`{"k":5,"d":"x","x":"y"},{"k":6,"d":"z","x":"z"}`)
	require.NoError(t, err)
	require.Equal(t, []string{"1 a a", "2 b (null)", "3 x y", "4 (null) z", "5 x y", "6 z z"}, w.rows(`{"table":"t","order":"asc"}`))
}

func TestResumedStream(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", `[]`)
	resume := command(`{"table":"t","resume":"r1"}`)
	sent := messagesOf(t, resume, tripsSchema, trip("a", 1, 1), trip("a", 2, 2), trip("a", 3, 3))

	p := w.doPut()
	p.send(sent[0])
	progress, err := p.next() // before anything is sent
	require.NoError(t, err)
	require.Equal(t, ingest.Progress{}, progress)
	p.send(sent[1], sent[2])
	for progress.Batches < 2 {
		progress, err = p.next()
		require.NoError(t, err)
	}
	p.cancel()

	p = w.doPut()
	p.send(sent[0])
	again, err := p.next()
	require.NoError(t, err)
	require.Equal(t, progress, again)
	p.send(sent[3])
	said, err := p.finish()
	require.NoError(t, err)
	require.Equal(t, uint64(3), said[len(said)-1].Batches)
	require.Equal(t, []string{"a 1 1", "a 2 2", "a 3 3"}, w.rows(`{"table":"t","order":"asc"}`))
}

func TestReplaceBrokenOff(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(5, 100))
	replace := command(`{"table":"t","mode":"replace_table"}`)
	sent := messagesOf(t, replace, tripsSchema, trip("z", 1, 1))
	p := w.doPut()
	p.send(sent[0])
	for range 1000 {
		p.send(sent[1])
	}
	require.Len(t, w.rows(`{"table":"t"}`), 500)
	p.cancel()
	_, err := p.rest()
	require.Equal(t, codes.Canceled, status.Code(err))
	require.Len(t, w.rows(`{"table":"t"}`), 500)
	_, err = w.doPutAll(replace, tripsSchema, trip("z", 1, 1))
	require.NoError(t, err)
	require.Equal(t, []string{"z 1 1"}, w.rows(`{"table":"t"}`))
}

func TestManyWritersAtOnce(t *testing.T) {
	const writers, batches = 8, 50
	w := newWorld(t, Options{Receiving: 1 << 20})
	w.putTrips("t", `[]`)
	done := make(chan error, writers)
	var rows atomic.Int64
	for writer := range writers {
		var texts []string
		for i := range batches {
			texts = append(texts, trip(fmt.Sprintf("w%d", writer), i, i)+","+trip(fmt.Sprintf("x%d", writer), i, i))
		}
		sent := messagesOf(t, path("t"), tripsSchema, texts...)
		p := w.doPut()
		go func() {
			for _, message := range sent {
				if err := p.stream.Send(message); err != nil {
					done <- err
					return
				}
			}
			if err := p.stream.CloseSend(); err != nil {
				done <- err
				return
			}
			said, err := p.rest()
			if err == nil {
				rows.Add(int64(said[len(said)-1].Rows))
			}
			done <- err
		}()
	}
	for range writers {
		require.NoError(t, <-done)
	}
	require.Equal(t, int64(2*writers*batches), rows.Load())
	require.Len(t, w.rows(`{"table":"t"}`), 2*writers*batches)
}

// Whatever bytes come as a message, the stream ends with an error of the
// client's or goes on; the server lives.
func FuzzPutMessage(f *testing.F) {
	for _, message := range messagesOf(&testing.T{}, path("t"), keyed(), trip("a", 1, 1)) {
		f.Add(message.DataHeader, message.DataBody)
	}
	f.Fuzz(func(t *testing.T, header, body []byte) {
		w := newWorld(t, Options{Allocator: memory.DefaultAllocator, MaxMessage: 1 << 20})
		p := w.doPut()
		p.send(messagesOf(t, path("t"), keyed())[0], &flight.FlightData{DataHeader: header, DataBody: body})
		_, err := p.finish()
		if code := status.Code(err); code != codes.OK && code != codes.InvalidArgument && code != codes.ResourceExhausted {
			t.Fatal(err)
		}
	})
}

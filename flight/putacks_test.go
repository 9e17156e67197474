package flight

import (
	"context"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/stretchr/testify/require"
)

// endless is the context of a stream.
type endless struct {
	flight.FlightService_DoPutServer
	ctx context.Context
}

func (e endless) Context() context.Context { return e.ctx }

// A client that waits for acknowledgements proves that it reads, and gets them at
// once again; one that goes on without them gets them only when it is quiet.
func TestAcknowledgementsOfWaitingClients(t *testing.T) {
	newAcks := func() *putAcks {
		return &putAcks{stream: endless{ctx: t.Context()}, wake: make(chan struct{}, 1), unread: ackFreely}
	}
	a := newAcks()
	for range 1000 {
		signal(a.wake)
		require.NoError(t, a.wait())
		if a.unread == 0 {
			break
		}
	}
	require.Zero(t, a.unread)
	signal(a.wake)
	start := time.Now()
	require.NoError(t, a.wait())
	require.Zero(t, a.proofs)
	require.True(t, a.probed.IsZero(), "held for %v", time.Since(start))

	a = newAcks()
	a.proofs = ackProofs - 1
	signal(a.wake)
	ended := make(chan error, 1)
	go func() { ended <- a.wait() }()
	for len(a.wake) > 0 {
		time.Sleep(time.Microsecond)
	}
	signal(a.wake) // more has come while one was held
	require.NoError(t, <-ended)
	require.Equal(t, int64(ackFreely), a.unread)
	require.Less(t, a.proofs, ackProofs)
}

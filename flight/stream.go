package flight

import (
	"context"

	"google.golang.org/grpc"
)

// queued bounds the messages that wait between the scan and the client.
const queued = 2

// pipe runs produce beside the sending of what it emits, so that the next
// messages are made while gRPC writes. It returns when both are done: a client
// that leaves stops produce at once, through its context, and an error of
// produce ends the stream behind the messages that it emitted before.
func pipe(stream grpc.ServerStream, produce func(ctx context.Context, emit func(*outbound) error) error) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	queue := make(chan *outbound, queued)
	made := make(chan error, 1)
	go func() {
		defer close(queue)
		made <- guard(func() error {
			return produce(ctx, func(message *outbound) error {
				select {
				case queue <- message:
					return nil
				case <-ctx.Done():
					message.discard()
					return ctx.Err()
				}
			})
		})
	}()
	var sent error
	for message := range queue {
		if sent == nil {
			if sent = stream.SendMsg(message); sent != nil {
				cancel()
			}
		}
		message.discard()
	}
	if err := <-made; sent == nil {
		return err
	}
	return sent
}

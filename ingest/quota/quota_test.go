package quota_test

import (
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/ingest/quota"
)

func TestLimitIsAtATime(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	q := quota.New(mem, 100)
	exceeded := errors.New("exceeded")
	try := func(use func()) (err error) {
		defer quota.Recover(&err, func() error { return exceeded })
		use()
		return nil
	}
	var a []byte
	require.NoError(t, try(func() { a = q.Allocate(60) }))
	require.ErrorIs(t, try(func() { q.Allocate(41) }), exceeded)
	require.NoError(t, try(func() { a = q.Reallocate(100, a) }))
	require.ErrorIs(t, try(func() { q.Reallocate(101, a) }), exceeded)
	q.Free(a)
	require.NoError(t, try(func() { a = q.Allocate(100) }))
	q.Free(a)
	require.PanicsWithValue(t, "other", func() { _ = try(func() { panic("other") }) })
}

package results

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// Lanes that append at once share an fsync: compare the time per record of one
// lane and of eight.
func BenchmarkAppend(b *testing.B) {
	for _, lanes := range []int{1, 8} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			run, err := Create(b.TempDir(), "s", RunMeta{}, t0)
			if err != nil {
				b.Fatal(err)
			}
			w, err := run.OpenWriter("kim")
			if err != nil {
				b.Fatal(err)
			}
			var n atomic.Int64
			done := make(chan error)
			b.ResetTimer()
			for l := range lanes {
				go func() {
					var err error
					for err == nil && n.Add(1) <= int64(b.N) {
						_, err = w.Append(b.Context(), Record{Lane: fmt.Sprint(l), Kind: KindNote, Note: "n"})
					}
					done <- err
				}()
			}
			for range lanes {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

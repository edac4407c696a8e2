package gcsstoretest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
)

// BenchmarkLock compares a lock and its release with what people write by hand: an object that
// is created if there is none, and deleted. Each goroutine has a lock of its own.
func BenchmarkLock(b *testing.B) {
	srv := start(b)
	s := open(b, srv.URL, gcsstore.Options{})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(client.CloseIdleConnections)
	do := func(method, path string, body []byte) error {
		req, err := http.NewRequestWithContext(b.Context(), method, srv.URL+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode >= 300 {
			return errors.Join(err, errors.New(res.Status))
		}
		return nil
	}
	for _, goroutines := range []int{1, 64} {
		run := func(name string, lock func(i int) error) {
			b.Run(fmt.Sprintf("%s/%d", name, goroutines), func(b *testing.B) {
				var wg sync.WaitGroup
				for i := range goroutines {
					wg.Go(func() {
						for range (b.N + goroutines - 1 - i) / goroutines {
							if err := lock(i); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
		run("by-hand", func(i int) error {
			name := url.QueryEscape(fmt.Sprint("hand/", i))
			if err := do(http.MethodPost, "/upload/storage/v1/b/"+bucket+"/o?uploadType=media&ifGenerationMatch=0&name="+name, []byte("me")); err != nil {
				return err
			}
			return do(http.MethodDelete, "/storage/v1/b/"+bucket+"/o/"+name, nil)
		})
		run("leasehold", func(i int) error {
			l := lease(fmt.Sprint("own ", i), time.Minute)
			if _, err := s.Acquire(b.Context(), store.AcquireRequest{Lease: l}); err != nil {
				return err
			}
			return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
		})
	}
}

// BenchmarkHandOff has clients pass one lock among them, and tells how many requests a turn took.
func BenchmarkHandOff(b *testing.B) {
	srv := start(b)
	for _, clients := range []int{2, 16} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			var stores []*store.Store
			for range clients {
				stores = append(stores, open(b, srv.URL, gcsstore.Options{}))
			}
			srv.Taken()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i, s := range stores {
				wg.Go(func() {
					for range (b.N + clients - 1 - i) / clients {
						l := lease("one", time.Minute)
						if _, err := s.Wait(b.Context(), store.WaitRequest{Lease: l}, nil); err != nil {
							b.Error(err)
							return
						}
						if err := s.Release(b.Context(), store.ReleaseRequest{Lease: l}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			n := srv.Taken()
			b.ReportMetric(float64(n[http.MethodGet])/float64(b.N), "GET/op")
			b.ReportMetric(float64(n[http.MethodPost])/float64(b.N), "POST/op")
		})
	}
}

package s3storetest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/s3store"
)

// BenchmarkLock compares a lock and its release with what people write by hand: an object that
// is created if there is none, and deleted; and with two updates of an object, since locks here
// are never deleted. Each goroutine has a lock of its own. server-ms/op is the time that processors
// work for the server.
func BenchmarkLock(b *testing.B) {
	srv := start(b)
	client, s := srv.client(), open(b, srv.url(), s3store.Options{})
	for _, goroutines := range []int{1, 64} {
		run := func(name string, lock func(i int) error) {
			b.Run(fmt.Sprintf("%s/%d", name, goroutines), func(b *testing.B) {
				before := srv.worked()
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
				if after := srv.worked(); after > before {
					b.ReportMetric(float64(after-before)/float64(time.Millisecond)/float64(b.N), "server-ms/op")
				}
			})
		}
		run("by-hand", func(i int) error {
			key := aws.String(fmt.Sprint("hand/", i))
			if _, err := client.PutObject(b.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: key, Body: bytes.NewReader([]byte("me")), IfNoneMatch: aws.String("*")}); err != nil {
				return err
			}
			_, err := client.DeleteObject(b.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: key})
			return err
		})
		tags := make([]*string, goroutines)
		run("updates-by-hand", func(i int) error {
			for range 2 {
				in := &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(fmt.Sprint("updated/", i)), Body: strings.NewReader(rand.Text()), IfMatch: tags[i]}
				out, err := client.PutObject(b.Context(), in)
				if err != nil {
					return err
				}
				tags[i] = out.ETag
			}
			return nil
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
// A lock by hand is asked for again every 20 ms, which is also the clients' Poll.
func BenchmarkHandOff(b *testing.B) {
	srv := start(b)
	d := openDoor(b, srv)
	for _, clients := range []int{2, 16} {
		run := func(name string, lock func(i int) func() error) {
			b.Run(fmt.Sprintf("%s/%d", name, clients), func(b *testing.B) {
				var turns []func() error
				for i := range clients {
					turns = append(turns, lock(i))
				}
				d.taken()
				b.ResetTimer()
				var wg sync.WaitGroup
				for i, turn := range turns {
					wg.Go(func() {
						for range (b.N + clients - 1 - i) / clients {
							if err := turn(); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				n := d.taken()
				b.ReportMetric(float64(n["GET"])/float64(b.N), "GET/op")
				b.ReportMetric(float64(n["PUT"]+n["DELETE"])/float64(b.N), "PUT/op")
			})
		}
		run("by-hand", func(int) func() error {
			c := srv.client()
			through := func(o *s3.Options) { o.BaseEndpoint = aws.String(d.URL) }
			key := aws.String("hand/one")
			return func() error {
				for {
					_, err := c.PutObject(b.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: key, Body: bytes.NewReader([]byte("me")), IfNoneMatch: aws.String("*")}, through)
					if err == nil {
						_, err = c.DeleteObject(b.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: key}, through)
						return err
					}
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
		run("leasehold", func(int) func() error {
			s := open(b, d.URL, s3store.Options{})
			return func() error {
				l := lease("one", time.Minute)
				if _, err := s.Wait(b.Context(), store.WaitRequest{Lease: l}, nil); err != nil {
					return err
				}
				return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
			}
		})
	}
}

// Package objects has what stores over servers of objects share.
//
//	open.go     an engine, and trying a server out before a store uses it, and for the doctor
//	objects.go  lists, and the number with which the record of a new object begins
//	pacer.go    slowing down when a server asks for fewer requests
//	url.go      URLs, and the options that engines have in common
//	client.go   requests of drivers that speak HTTP themselves, and what answers mean
package objects

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// FloorAt returns the number with which the record of an object begins that does not exist, by
// the answer that says so: the server's time in units of 4 ms. If the object was
// deleted, its last number was smaller, since nobody replaces an object 250 times a second all the
// time.
func FloorAt(res *http.Response) (uint64, error) {
	date, err := time.Parse(time.RFC1123, res.Header.Get("Date"))
	if floor := date.UnixMilli() / 4; err == nil && floor > 0 && floor <= recordstore.MaxFloor {
		return uint64(floor), nil
	}
	return 0, recordstore.Refusal("the server sends no date with its answer, which tokens begin with")
}

// listers is how many objects are read at once for a list.
const listers = 16

// List reads the records of all keys, several at once, and calls each with them, one at a time. The
// names of objects begin with prefix. page returns some of them, and what the page after them is
// called, or "". Objects with the keys ProbeKey and others have no records. Requests that fail are repeated
// until ctx ends. List returns the first error.
func List(ctx context.Context, prefix string, page func(ctx context.Context, called string) (names []string, next string, err error),
	read func(ctx context.Context, key string) (recordstore.Item, error), each func(string, recordstore.Item) error, others ...string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	found := make(chan string)
	var one sync.Mutex // each is called once at a time
	var wg sync.WaitGroup
	for range listers {
		wg.Go(func() {
			for key := range found {
				it, err := Again(ctx, func(ctx context.Context) (recordstore.Item, error) { return read(ctx, key) })
				one.Lock()
				if err == nil && ctx.Err() == nil {
					err = each(key, it)
				}
				if err != nil {
					cancel(err)
				}
				one.Unlock()
			}
		})
	}
	for next, more := "", true; more && ctx.Err() == nil; more = next != "" {
		names, err := Again(ctx, func(ctx context.Context) ([]string, error) {
			names, after, err := page(ctx, next)
			if err == nil {
				next = after
			}
			return names, err
		})
		if err != nil {
			cancel(err)
		}
		for _, name := range names {
			key := strings.TrimPrefix(name, prefix)
			if strings.Contains(key, "/") || key == ProbeKey || slices.Contains(others, key) {
				continue
			}
			select {
			case found <- key:
			case <-ctx.Done():
			}
		}
	}
	close(found)
	wg.Wait()
	return context.Cause(ctx)
}

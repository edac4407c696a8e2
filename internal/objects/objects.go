// Package objects has what stores over servers of objects share.
//
//	open.go     trying a server out before a store uses it, and for the doctor
//	objects.go  lists, prefixes, and the number with which the record of a new object begins
//	pacer.go    slowing down when a server asks for fewer requests
//	url.go      URLs
package objects

import (
	"context"
	"iter"
	"net/http"
	"regexp"
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

var prefixForm = regexp.MustCompile(`^[A-Za-z0-9!_.*'()-]+(/[A-Za-z0-9!_.*'()-]+)*$`)

// ValidPrefix reports whether prefix can be what the keys of all objects begin with.
func ValidPrefix(prefix string) bool {
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "." || part == ".." { // which some servers take for folders
			return false
		}
	}
	return prefixForm.MatchString(prefix) && len(prefix) <= 512
}

// listers is how many objects are read at once for a list.
const listers = 16

// List reads the records of all keys that keys sends, several at once, and calls each with them, one
// at a time. Reads that fail are repeated until ctx ends. List returns the first error.
func List(ctx context.Context, keys func(ctx context.Context, found chan<- string) error, read func(ctx context.Context, key string) (recordstore.Item, error), each func(string, recordstore.Item) error) error {
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
	err := keys(ctx, found)
	close(found)
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Send sends the keys of the objects with these names to found, except those that are not of
// records: prefix is what all begin with, and others names the rest.
func Send(ctx context.Context, found chan<- string, prefix string, names iter.Seq[string], others ...string) error {
	for name := range names {
		key := strings.TrimPrefix(name, prefix)
		if strings.Contains(key, "/") || slices.Contains(others, key) {
			continue
		}
		select {
		case found <- key:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

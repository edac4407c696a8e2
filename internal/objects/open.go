package objects

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Driver is a driver of recordstore whose server can be tried out.
type Driver interface {
	recordstore.Driver
	// Probe returns an error that matches recordstore.ErrRefused if the server cannot keep locks. It
	// blocks until the server has answered or ctx ends.
	Probe(ctx context.Context) error
}

// Check returns an error that matches store.ErrInvalid if the prefix of all keys, the URL of the
// server or a time cannot be used. An empty endpoint is none.
func Check(prefix, endpoint string, skew, poll, timeout time.Duration) error {
	if !ValidPrefix(prefix) {
		return fmt.Errorf("%w: prefix %q: use letters, digits, - and _, with single slashes in between", store.ErrInvalid, store.Excerpt(prefix))
	}
	if skew < 0 || poll < 0 || timeout < 0 {
		return fmt.Errorf("%w: skew, poll and timeout cannot be negative", store.ErrInvalid)
	}
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%w: the endpoint has the form https://HOST:PORT, without credentials", store.ErrInvalid)
	}
	return nil
}

// Open makes a driver with connect, tries its server out, and returns a store over it. It blocks
// for o.Timeout at most. Its errors name the engine and the URL of the bucket.
func Open[D Driver](ctx context.Context, engine, bucket string, o recordstore.Options, connect func(context.Context) (D, error)) (*store.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	d, err := connect(ctx)
	if err == nil {
		if err = d.Probe(ctx); err != nil {
			_ = d.Close()
		}
	}
	if err != nil {
		return nil, &store.QuorumError{Op: "open", Store: engine, Need: 1, Nodes: []store.NodeOutcome{{Node: bucket, Outcome: outcomeOf(err), Err: err}}}
	}
	return recordstore.New(d, &o), nil
}

func outcomeOf(err error) store.Outcome {
	switch {
	case errors.Is(err, recordstore.ErrRefused):
		return store.Refused
	case errors.Is(err, context.DeadlineExceeded):
		return store.TimedOut
	}
	return store.Unreachable
}

// Examine tries a server out as Open does, calls also, and acquires and releases a lock. It returns
// how long that took, or why no lock could be acquired. It blocks for a few times timeout at most.
func Examine[D Driver](ctx context.Context, timeout time.Duration, connect func(context.Context) (D, error), also func(context.Context, D) error) (took time.Duration, unusable error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d, err := connect(bounded)
	if err != nil {
		return 0, err
	}
	s := recordstore.New(d, &recordstore.Options{Timeout: timeout})
	defer s.Close()
	if err := d.Probe(bounded); err != nil {
		return 0, err
	}
	if err := also(bounded, d); err != nil {
		return 0, err
	}
	began := time.Now()
	l := store.Lease{Name: "leasehold-doctor", Owner: store.NewOwner(), TTL: timeout}
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); errors.Is(err, store.ErrBusy) {
		return time.Since(began), nil // another doctor has it
	} else if err != nil {
		return 0, err
	}
	err = s.Release(ctx, store.ReleaseRequest{Lease: l})
	return time.Since(began), err
}

// Conditions tries whether a server heeds conditions.
type Conditions struct {
	// Node names the server in errors. IfAbsent names the condition of a write that makes an
	// object, and IfSame the condition of a write that replaces a version.
	Node, IfAbsent, IfSame string
	// Absent is the version of an object that does not exist. No object has the version Other.
	Absent, Other string
	// Write replaces a version of an object that is there for nothing else.
	Write func(ctx context.Context, version string) (next string, err error)
}

// Try returns an error that matches recordstore.ErrRefused if the server does not heed
// conditions, and another one if it does not answer until ctx ends. It costs two requests, which the
// server refuses, and two more the first time.
func (c Conditions) Try(ctx context.Context) error {
	_, err := Again(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.once(ctx) })
	return err
}

// Again calls f until it succeeds, the server refuses it, or ctx ends. It returns the last error of
// f. f must be safe to repeat, as reads are.
func Again[T any](ctx context.Context, f func(ctx context.Context) (T, error)) (T, error) {
	for {
		v, err := f(ctx)
		if err == nil || errors.Is(err, recordstore.ErrRefused) {
			return v, err
		}
		if clock.Sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return v, err
		}
	}
}

func (c Conditions) once(ctx context.Context) error {
	version, err := c.Write(ctx, c.Absent)
	if err == nil { // the first time
		if err := c.refuses(ctx, c.Absent, c.IfAbsent); err != nil {
			return err
		}
		_, err := c.Write(ctx, version)
		for range 3 { // a server may also refuse a write while another one is under way
			if errors.Is(err, recordstore.ErrConflict) {
				_, err = c.Write(ctx, version)
			}
		}
		if errors.Is(err, recordstore.ErrConflict) {
			return recordstore.Refusal("%s refuses %s with the version that it has sent: %w", c.Node, c.IfSame, err)
		} else if err != nil {
			return err
		}
	} else if !errors.Is(err, recordstore.ErrConflict) {
		return err
	}
	return c.refuses(ctx, c.Other, c.IfSame)
}

// refuses returns an error unless the server refuses a write of that version.
func (c Conditions) refuses(ctx context.Context, version, condition string) error {
	switch _, err := c.Write(ctx, version); {
	case err == nil:
		return recordstore.Refusal("%s does not heed %s, so two clients could get one lock: use a server that has conditional writes", c.Node, condition)
	case !errors.Is(err, recordstore.ErrConflict):
		return err
	}
	return nil
}

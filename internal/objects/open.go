package objects

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Engine makes stores over one kind of server, with options O and a driver D.
type Engine[O any, D Driver] struct {
	Name, Scheme string // of the engine, such as gcs, and of its URLs, such as gs
	Service      string // what errors call it, such as Cloud Storage
	Form         string // what follows the scheme in a URL, such as BUCKET/PREFIX
	Credentials  string // where credentials are given
	Server       string // where a server is named
	Common       func(o *O) Common
	// Settings are what URLs can set that is not in Common.
	Settings []Setting[O]
	// Complete sets defaults that only this engine has. It returns an error that matches
	// store.ErrInvalid if the options cannot be used.
	Complete func(o *O) error
	// Connect makes a driver. It asks the server for nothing.
	Connect func(ctx context.Context, o O) (D, error)
}

// Driver is a driver of recordstore whose server can be tried out.
type Driver interface {
	recordstore.Driver
	// Node names the server and the bucket.
	Node() string
	// Probe returns an error that matches recordstore.ErrRefused if the server cannot keep locks. It
	// blocks until the server has answered or ctx ends.
	Probe(ctx context.Context) error
}

// Register lets store.Open open URLs of the engine.
func (e Engine[O, D]) Register() {
	store.Register(e.Scheme, func(ctx context.Context, url string, given store.OpenOptions) (*store.Store, error) {
		var o O
		*e.Common(&o).Logger = given.Logger
		return e.Open(ctx, url, &o)
	})
}

// Open makes a driver for a URL, tries its server out, and returns a store over it. It blocks for
// the timeout at most. Its errors name the engine and the bucket.
func (e Engine[O, D]) Open(ctx context.Context, url string, given *O) (*store.Store, error) {
	o, err := e.Options(url, given)
	if err != nil {
		return nil, err
	}
	c := e.Common(&o)
	ctx, cancel := context.WithTimeout(ctx, *c.Timeout)
	defer cancel()
	d, err := e.Connect(ctx, o)
	if err == nil {
		if err = d.Probe(ctx); err != nil {
			_ = d.Close()
		}
	}
	if err != nil {
		return nil, &store.QuorumError{Op: "open", Store: e.Name, Need: 1, Nodes: []store.NodeOutcome{{Node: e.bucket(c), Outcome: outcomeOf(err), Err: err}}}
	}
	records := recordstore.Options{Timeout: *c.Timeout, Poll: time.Second, Look: 10 * time.Second, Logger: *c.Logger}
	if c.Poll != nil {
		records.Poll = *c.Poll
	}
	return recordstore.New(d, &records), nil
}

func (e Engine[O, D]) bucket(c Common) string { return e.Scheme + "://" + *c.Bucket }

func outcomeOf(err error) store.Outcome {
	switch {
	case errors.Is(err, recordstore.ErrRefused):
		return store.Refused
	case errors.Is(err, context.DeadlineExceeded):
		return store.TimedOut
	}
	return store.Unreachable
}

// Examination is what Examine found.
type Examination struct {
	Node     string        // names the server and the bucket
	Class    store.Class   // what a lock can require
	Took     time.Duration // of a lock and its release
	Unusable error         // why no lock could be acquired, or nil
}

// Examine calls also, unless it is nil, tries a server out as Open does, and acquires and releases a
// lock. It blocks for a few times the timeout at most. The error is about the URL and the options;
// what is wrong with the server is in the result.
func (e Engine[O, D]) Examine(ctx context.Context, url string, given *O, also func(context.Context, D) error) (Examination, error) {
	o, err := e.Options(url, given)
	if err != nil {
		return Examination{}, err
	}
	x := Examination{Node: e.bucket(e.Common(&o))}
	x.Unusable = e.examine(ctx, o, also, &x)
	return x, ctx.Err()
}

func (e Engine[O, D]) examine(ctx context.Context, o O, also func(context.Context, D) error, x *Examination) error {
	timeout := *e.Common(&o).Timeout
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d, err := e.Connect(bounded, o)
	if err != nil {
		return err
	}
	x.Node, x.Class = d.Node(), d.Describe().Class
	s := recordstore.New(d, &recordstore.Options{Timeout: timeout})
	defer s.Close()
	if also != nil {
		if err := also(bounded, d); err != nil {
			return err
		}
	}
	if err := d.Probe(bounded); err != nil {
		return err
	}
	began := time.Now()
	defer func() { x.Took = time.Since(began) }()
	l := store.Lease{Name: "leasehold-doctor", Owner: store.NewOwner(), TTL: timeout}
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); errors.Is(err, store.ErrBusy) {
		return nil // another doctor has it
	} else if err != nil {
		return err
	}
	return s.Release(ctx, store.ReleaseRequest{Lease: l})
}

// Conditions tries whether a server heeds conditions.
type Conditions struct {
	// IfAbsent names the condition of a write that makes an object in errors, and IfSame that of a
	// write that replaces a version.
	IfAbsent, IfSame string
	// Absent is the version of an object that does not exist. No object has the version Other.
	Absent, Other string
}

type writer interface {
	Node() string
	Write(ctx context.Context, key string, value []byte, version string, idle bool) (next string, err error)
}

// ProbeKey is the key of an object that is there for tries alone. Keys of records are hexadecimal or
// begin with h.
const ProbeKey = "probe"

// Try returns an error that matches recordstore.ErrRefused if the server does not heed
// conditions, and another one if it does not answer until ctx ends. It costs two requests, which the
// server refuses, and two more the first time. It writes the object key, which is there for nothing
// else, such as ProbeKey.
func (c Conditions) Try(ctx context.Context, d writer, key string) error {
	write := func(version string) (string, error) {
		return d.Write(ctx, key, []byte("Leasehold tries here whether this server has conditional writes. "+rand.Text()), version, false)
	}
	_, err := Again(ctx, func(context.Context) (struct{}, error) { return struct{}{}, c.once(d.Node(), write) })
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

func (c Conditions) once(node string, write func(version string) (string, error)) error {
	version, err := write(c.Absent)
	if err == nil { // the first time
		if err := refuses(node, write, c.Absent, c.IfAbsent); err != nil {
			return err
		}
		_, err := write(version)
		for range 3 { // a server may also refuse a write while another one is under way
			if errors.Is(err, recordstore.ErrConflict) {
				_, err = write(version)
			}
		}
		if errors.Is(err, recordstore.ErrConflict) {
			return recordstore.Refusal("%s refuses %s with the version that it has sent: %w", node, c.IfSame, err)
		} else if err != nil {
			return err
		}
	} else if !errors.Is(err, recordstore.ErrConflict) {
		return err
	}
	return refuses(node, write, c.Other, c.IfSame)
}

// refuses returns an error unless the server refuses a write of that version.
func refuses(node string, write func(version string) (string, error), version, condition string) error {
	switch _, err := write(version); {
	case err == nil:
		return recordstore.Refusal("%s does not heed %s, so two clients could get one lock: use a server that has conditional writes", node, condition)
	case !errors.Is(err, recordstore.ErrConflict):
		return err
	}
	return nil
}

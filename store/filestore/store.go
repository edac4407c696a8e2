package filestore

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold/internal/audience"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/driver"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Options configure a store. The zero value and nil are good defaults. What is set both here
// and in the URL must have the same value in both.
type Options struct {
	// MaxTTL is the longest TTL that the store accepts. Zero means no limit.
	MaxTTL time.Duration
	// Timeout bounds every call. Zero means 5 s.
	Timeout time.Duration
	// Shared lets Open accept a folder that another user owns or can write, or that another
	// user can replace in its parent. Those users can take and end every lock in it. To
	// share a folder, make it empty, with the rights that it should have: what is made in it gets
	// the same.
	Shared bool
	// MakeDir makes Open create the parents of the folder if they are missing. Without it a
	// missing parent is an error, because a mistyped path would give locks that exclude nobody.
	MakeDir bool
	// Lasting has the leases of this process last for their TTL if it is killed, as after Close.
	// It is for a server, which holds leases for processes that do not end with it.
	Lasting bool
	// Logger logs clean-up that failed. Nil means no logging.
	Logger *slog.Logger
}

// engine is the engine of records, which also tells processes of broken leases.
type engine struct {
	driver.Engine
	d      *folder
	broken audience.Audience
}

// Open returns a store in the folder that a URL names:
//
//	file                      the user's own folder
//	file:DIR                  any other folder, whose parent has to exist
//	file:///DIR?shared=true   the same, with Options.Shared
//
// Its locks exclude all processes of this machine that open the same folder. The user's own
// folder is leasehold/locks in $XDG_STATE_HOME or, if that is not set, in ~/.local/state (on
// macOS in ~/Library/Application Support, on Windows in %LocalAppData%). In DIR write %25 for %
// and %3F for ?, or use url.PathEscape. If the URL is wrong, the error matches store.ErrInvalid.
// A nil o means the defaults. Open does not block for long.
//
// A missing folder is made, with access for its owner only. Its parent must exist unless
// Options.MakeDir is set. Open refuses a folder that a user other than this one and the
// administrator owns or can write: that user could take and end every lock. It also refuses
// one whose parent belongs to another user, or is writable by everybody and not sticky (as /tmp
// is), because the folder could be replaced there. Parents further up are not checked. See
// Options.Shared for folders that several users share on purpose. It refuses a folder that has
// files of something else.
//
// Do not remove or replace files in the folder while processes use it. Their stores would then
// grant nothing more, and no other process could open the folder until the last of them has
// ended.
//
// The folder must not be on a network file system; see the package documentation.
//
// An error of the store that concerns neither the lock nor the caller's context is a
// *store.QuorumError with one node. Its outcome is store.Refused if a person has to mend it.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	dir, c, err := resolve(url, o)
	if err != nil {
		return nil, err
	}
	return open(ctx, dir, &c, thisMachine())
}

func open(ctx context.Context, dir string, o *Options, m machine) (*store.Store, error) {
	o = cmp.Or(o, &Options{})
	if o.MaxTTL < 0 || o.Timeout < 0 {
		return nil, fmt.Errorf("%w: MaxTTL %v, Timeout %v: neither may be negative", store.ErrInvalid, o.MaxTTL, o.Timeout)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock folder %s: %w", dir, err)
	}
	s := &engine{}
	var err error
	if s.d, err = openFolder(dir, o, m, s.broken.Tell); err != nil {
		return nil, err
	}
	var d recordstore.Driver = s.d
	poll := 10 * time.Millisecond
	if pushes {
		d = pushing{s.d}
		poll = 50 * time.Millisecond
	}
	s.Engine = recordstore.New(d, &recordstore.Options{Timeout: o.Timeout, Poll: poll, Logger: o.Logger}).Engine()
	return store.New(s), nil
}

// Caps implements driver.Engine.
func (s *engine) Caps() store.Caps {
	c := s.Engine.Caps()
	c.Notifies = pushes
	return c
}

// BreakLease implements driver.Engine.
func (s *engine) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	left, err = s.Engine.BreakLease(ctx, r)
	if err == nil {
		s.d.peers.ringAll(brokenPrefix + r.Owner)
		s.broken.Tell(r.Owner)
	}
	return left, err
}

// NotifyBroken implements driver.Engine. Without sessions (see the package documentation)
// f is called only for leases that are broken through s itself.
func (s *engine) NotifyBroken(f func(owner string)) (stop func()) { return s.broken.Add(f) }

// Tether returns a file that a child process has to inherit if it works under a lock of this
// process and may outlive it. As long as anybody has the file open, the leases of this process
// last for their TTL even if it has ended. The caller closes the file. It is nil if s is no store
// in a folder, and on Windows: leases last for their TTL in any case.
func Tether(s *store.Store) (*os.File, error) {
	if e, ok := s.Engine().(*engine); ok {
		return e.d.peers.tether()
	}
	return nil, nil
}

package zkstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// BreakLease implements driver.Engine. If the holder's process lives and ignores the break, a
// further call ends the lease, a TTL after the first one through this store. Leases of other
// kinds of clients are refused with store.ErrUnsupported.
func (s *engine) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	t, err := s.anyTree(ctx)
	if err == nil {
		left, err = (&breaking{tree: t, r: r, marks: &s.marks, clock: s.clock}).run(ctx)
	}
	if errors.Is(err, store.ErrNotHeld) {
		err = fmt.Errorf("break the lease of %q: %w", r.Name, err)
	}
	return left, s.failed(ctx, "break the lease of", r.Name, err)
}

// marks remembers since when a store has known that leases were broken, by the paths of
// their places.
type marks struct {
	mu    sync.Mutex
	since map[string]clock.Instant
}

const mostMarks = 1000

// add notes that a lease is known to be broken from now on, unless it is known already. It
// returns since when it is known.
func (m *marks) add(place string, now clock.Instant) clock.Instant {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since == nil || len(m.since) >= mostMarks {
		m.since = make(map[string]clock.Instant)
	}
	since, ok := m.since[place]
	if !ok {
		since = now
		m.since[place] = now
	}
	return since
}

// breaking is one call of BreakLease.
type breaking struct {
	tree
	r     store.BreakRequest
	marks *marks
	clock clock.Clock
}

// run looks at the lease, and changes what toBreak says in one transaction, until nothing has
// changed in between. If the outcome of a transaction is unknown, the next look shows it.
func (b *breaking) run(ctx context.Context) (left time.Duration, err error) {
	for {
		v, err := b.look(ctx)
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return 0, err
		}
		do, left := v.toBreak(b.r)
		switch do {
		case breakNothing:
			return 0, store.ErrNotHeld
		case breakForeign:
			return 0, store.UnbreakableError(b.r.Name)
		case breakOver, breakWait:
			return left, nil
		}
		err = b.commit(ctx, do, v)
		switch {
		case errors.Is(err, errChanged):
			continue
		case err != nil:
			return 0, err
		case do == breakMark:
			b.marks.add(v.path, b.clock.Now())
		}
		return left, nil
	}
}

// breakView is what was read of a lease, with the versions of the nodes.
type breakView struct {
	target
	path    string // of the place
	record  record
	version int32
	notes   notes
	// lockNode has the places, notesNode the notes about the lock, and commonNode the
	// announcements about all locks.
	lockNode, notesNode, commonNode zk.Node
	hasNotes, hasCommon             bool
}

// look reads the lease as the leader knows it.
func (b *breaking) look(ctx context.Context) (v breakView, err error) {
	f, ok, err := b.find(ctx, b.r.Name, b.r.Owner)
	if err != nil {
		return v, err
	}
	dir := b.dir(b.r.Name)
	v.path, v.record, v.version = dir+"/"+f.name, f.record, f.version
	if v.held = ok && f.held(); v.held && f.needsOthers() {
		a, err := agree(ctx, b.tree, dir, f.line, f.index)
		if err != nil {
			return v, err
		}
		v.record, v.version = a.record, a.version
	}
	if v.held {
		v.token, v.ttl, v.marked = tokenOf(v.record, f.czxid), v.record.TTL, v.record.Broken
	}
	if v.marked {
		now := b.clock.Now()
		v.known = now.Sub(b.marks.add(v.path, now))
	}
	if v.lockNode, _, err = b.node(ctx, dir); err != nil {
		return v, err
	}
	if v.notesNode, v.hasNotes, err = b.node(ctx, b.notesOf(dir)); err != nil {
		return v, err
	}
	if v.commonNode, v.hasCommon, err = b.node(ctx, b.notesDir()); err != nil {
		return v, err
	}
	v.notes = decodeJSON[notes](v.notesNode.Data)
	v.noted = v.notes.has(b.r.Owner, b.r.Token)
	if !v.held {
		v.foreign, err = b.isForeign(ctx)
	}
	return v, err
}

// isForeign reports whether the owner is another kind of client, as Inspect shows it.
func (b *breaking) isForeign(ctx context.Context) (bool, error) {
	st, err := b.state(ctx, b.r.Name, store.MaxQueue)
	foreign := func(h store.Holder) bool { return h.Owner == b.r.Owner && h.Foreign }
	return foreign(st.Holder) || slices.ContainsFunc(st.Holders, func(h store.Holding) bool { return foreign(h.Holder) }) ||
		slices.ContainsFunc(st.Queue, func(p store.Place) bool { return foreign(p.Holder) }), err
}

// commit does what toBreak says, in one transaction. It returns errChanged if something has
// changed since it was read, perhaps by this very transaction.
func (b *breaking) commit(ctx context.Context, do breakStep, v breakView) error {
	ops := []zk.Request{zk.Delete(v.path, v.version)}
	if do == breakMark {
		v.record.Broken = true
		ops[0] = zk.Set(v.path, v.record.encode(), v.version)
	}
	if do != breakEnd {
		notes, err := b.note(ctx, v)
		if err != nil {
			return err
		}
		ops = append(ops, notes...)
	}
	answers, err := b.Commit(ctx, ops...)
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists):
		return errChanged
	}
	return explain(err, refusedAt(ops, answers, v.path))
}

// note returns the changes that say that the lease is broken: to clients that take the lock,
// to people, and to the holder.
func (b *breaking) note(ctx context.Context, v breakView) (ops []zk.Request, err error) {
	dir := b.dir(b.r.Name)
	var acl []zk.ACL // of nodes that are to be made
	if !v.hasNotes || !v.hasCommon {
		if acl, err = b.aclOf(ctx, dir); err != nil {
			return nil, err
		}
	}
	if !v.hasCommon {
		// Every identity that can make locks below the base writes to it.
		all, err := b.aclOf(ctx, b.base)
		switch {
		case errors.Is(err, zk.ErrNoAuth): // the base does not show its rights to this identity
			all = nil
		case err != nil:
			return nil, err
		}
		err = b.Do(ctx, zk.Create(b.notesDir(), nil, append(all, acl...), zk.Persistent))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return nil, explain(err, b.notesDir())
		}
	}
	if len(v.lockNode.Data) == 0 {
		ops = append(ops, zk.Set(dir, notesMark, v.lockNode.Version))
	}
	next := encodeJSON(v.notes.add(broken{Owner: b.r.Owner, Attempt: v.record.Attempt, Token: b.r.Token, Note: b.r.Note()}))
	if v.hasNotes {
		ops = append(ops, zk.Set(b.notesOf(dir), next, v.notesNode.Version))
	} else {
		ops = append(ops, zk.Create(b.notesOf(dir), next, acl, zk.Persistent))
	}
	owners := decodeJSON[announced](v.commonNode.Data).add(b.r.Owner)
	return append(ops, zk.Set(b.notesDir(), encodeJSON(owners), v.commonNode.Version)), nil
}

// aclOf returns the rights to a node. Notes about a lock get those of the lock's node, and not
// those of the identity that breaks the lease: the clients of the lock have to read them.
func (b *breaking) aclOf(ctx context.Context, dir string) ([]zk.ACL, error) {
	answers, err := b.Ask(ctx, zk.GetACL(dir))
	if err != nil {
		return nil, err
	}
	acl, err := answers[0].ACL()
	hidden := func(a zk.ACL) bool { return a.Scheme == "digest" && strings.HasSuffix(a.ID, ":x") }
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, errChanged
	case err == nil && slices.ContainsFunc(acl, hidden): // without the right a, servers do not show whose rights they are
		err = zk.ErrNoAuth
	}
	return acl, explain(err, dir)
}

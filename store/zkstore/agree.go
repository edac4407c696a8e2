package zkstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// A place that holds a lock with others needs more than its position: a slot in a
// semaphore, or the token that readers share. A holder derives them from the record
// of the holder before it, and writes them into its own, in a transaction that fails if that
// holder is gone. So the holders agree one after the other. Those that have agreed are at the
// front of the queue, and each knows the slots of all before it.
//
// The first holder needs nobody: it has its own token and the slot 0. When the holders
// before a place leave before it has agreed, it becomes the first, and as nobody behind it
// has agreed, nobody holds the lock with what the earlier ones had.

// errChanged means that the queue has changed since it was read.
var errChanged = errors.New("the queue has changed")

// agreed is the record of a holder that has agreed or is the first, the version of its node
// and the zxid that made it.
type agreed struct {
	record
	version int32
	czxid   int64
}

// settle takes what the place, which holds the lock, has with others. It returns errChanged
// if the queue has to be read again.
func (p *place) settle(ctx context.Context, q queue, me int) error {
	if !p.needsOthers() {
		return nil
	}
	if j := q.nativeBefore(me); j >= 0 {
		if err := p.waitForAgreement(ctx, p.dir, q, j); err != nil {
			return err
		}
	}
	a, err := agree(ctx, p, p.dir, q, me)
	if err != nil {
		return err
	}
	// A place behind may have its turn as well, and watches this one.
	if !a.Agreed {
		a.record = a.first(p.numbered, p.czxid)
		if hasSeats(p.spec) && me+1 < len(q) {
			if a, err = p.write(ctx, a, p.path()); err != nil {
				return err
			}
		}
	}
	p.record = a.record
	return nil
}

// placeStore reads and writes the records of places.
type placeStore interface {
	// read reads the record of a place that may be a Store's. It returns errChanged if it is
	// gone.
	read(ctx context.Context, path string) (agreed, error)
	// write writes what was agreed on, unless the node has changed, or one of the nodes behind is
	// gone; then it returns errChanged.
	write(ctx context.Context, a agreed, path string, behind ...string) (agreed, error)
}

// agree makes the record of the holder q[i] agree with the holders before it, if it does not yet,
// and returns it. A holder before q[i] that has not agreed may be dead, so agree writes its record
// as well. It returns errChanged if the queue has to be read again.
func agree(ctx context.Context, s placeStore, dir string, q queue, i int) (agreed, error) {
	path := dir + "/" + q[i].name
	a, err := s.read(ctx, path)
	j := q.nativeBefore(i)
	if err != nil || a.Agreed || j < 0 {
		return a, err
	}
	before, err := agree(ctx, s, dir, q, j)
	if err != nil {
		return agreed{}, err
	}
	if !before.Agreed {
		before.record = before.first(q[j], before.czxid)
	}
	a.record = a.behind(before.record, q, i)
	return s.write(ctx, a, path, dir+"/"+q[j].name)
}

// graceOfOthers is how long the holder before may take to agree by itself. Without that pause, all
// readers that the end of a writer wakes at once would write each other's records.
const graceOfOthers = 250 * time.Millisecond

// waitForAgreement waits until the holder q[j] has agreed or changed, for at most
// graceOfOthers.
func (t tree) waitForAgreement(ctx context.Context, dir string, q queue, j int) error {
	if q.nativeBefore(j) < 0 {
		return nil // it is the first, and needs not
	}
	watch := zk.WatchNode(dir + "/" + q[j].name)
	defer watch.Stop()
	answers, err := t.Once(ctx, watch.Request())
	if err != nil {
		return err
	}
	n, ok, err := answers[0].Node()
	switch {
	case zk.Broken(err), err == nil && !ok:
		return errChanged
	case err != nil:
		return err
	}
	if rec, _ := decodeRecord(n.Data); rec.Agreed {
		return nil
	}
	timer := time.NewTimer(graceOfOthers)
	defer timer.Stop()
	select {
	case <-watch.Over:
		return nil
	case <-timer.C:
		return nil
	case <-t.Over:
		return t.Reason()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read implements placeStore.
func (t tree) read(ctx context.Context, path string) (a agreed, err error) {
	n, ok, err := t.Get(ctx, path)
	if err == nil && !ok {
		err = errChanged
	}
	rec, ours := decodeRecord(n.Data)
	if err == nil && !ours {
		err = fmt.Errorf("%w: %s is a place of another client, with a name of ours", store.ErrKindMismatch, path)
	}
	return agreed{rec, n.Version, n.Czxid}, err
}

// write implements placeStore.
func (t tree) write(ctx context.Context, a agreed, path string, behind ...string) (agreed, error) {
	parts := []zk.Request{zk.Set(path, a.encode(), a.version)}
	for _, before := range behind {
		parts = append(parts, zk.Check(before, zk.AnyVersion))
	}
	_, err := t.Commit(ctx, parts...)
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion):
		return a, errChanged // perhaps by this very write, if its answer was lost
	case err != nil:
		return a, explain(err, path)
	}
	a.version++
	return a, nil
}

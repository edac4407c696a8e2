package zkstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// The size of a semaphore is in the names of its places, which cannot change. Resize
// writes into their parent node that the places up to a number count as those of a
// semaphore of another size. Whoever finds a semaphore's place reads that as well.

// resize says that the places up to the number Until that were of a semaphore of From
// permits are of one of To permits.
type resize struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Until int32 `json:"until"`
}

// dirRecord is the data of the node that has the places.
type dirRecord struct {
	Resized []resize `json:"resized,omitempty"`
}

// decodeDir returns what the data says. Data of another kind of client says nothing.
func decodeDir(data []byte) dirRecord {
	var r dirRecord
	if json.Unmarshal(data, &r) != nil {
		return dirRecord{}
	}
	return r
}

func (r dirRecord) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("zkstore: encoding numbers failed: " + err.Error())
	}
	return b
}

// applyTo returns the queue with the kinds that its places have now.
func (r dirRecord) applyTo(q queue) queue {
	q = slices.Clone(q)
	for i := range q {
		for _, z := range r.Resized {
			if q[i].seq-z.Until <= 0 && q[i].spec == rule.Semaphore(z.From) {
				q[i].spec, q[i].resized = rule.Semaphore(z.To), true
			}
		}
	}
	return q
}

// add returns the record after a further resize of the semaphore whose places are q. It
// forgets those of which no place is left.
func (r dirRecord) add(from, to rule.Spec, q queue) dirRecord {
	var next dirRecord
	for _, z := range r.Resized {
		if q[0].seq-z.Until <= 0 {
			next.Resized = append(next.Resized, z)
		}
	}
	next.Resized = append(next.Resized, resize{from.Limit, to.Limit, q[len(q)-1].seq})
	return next
}

// hasSized reports whether the queue has a place of a semaphore.
func (q queue) hasSized() bool {
	return slices.ContainsFunc(q, func(c numbered) bool { return hasSeats(c.spec) })
}

// Resize implements store.Changer. Those who wait for the earlier number notice when they
// look next, within a third of their TTL.
func (s *Store) Resize(ctx context.Context, name string, from, to store.Kind) error {
	if err := s.gate.Enter(store.CheckResize(name, from, to, s.Caps())); err != nil {
		return err
	}
	defer s.gate.Leave()
	ctx, cancel := s.limited(ctx)
	defer cancel()
	err := s.resize(ctx, name, specOf(from), specOf(to))
	if err != nil && !isRefusal(err) && !errors.Is(err, store.ErrUnsupported) {
		err = s.failed(ctx, "resize", name, err)
	}
	return err
}

func (s *Store) resize(ctx context.Context, name string, from, to rule.Spec) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, leave, err := s.anyTree(ctx)
	if err != nil {
		return err
	}
	defer leave()
	dir := t.dir(name)
	for {
		if err := t.Sync(ctx); err != nil {
			return err
		}
		n, ok, err := t.Get(ctx, dir)
		if err != nil || !ok {
			return err
		}
		names, err := t.List(ctx, dir)
		if err != nil {
			return err
		}
		asked, now := queueOf(names), decodeDir(n.Data)
		q := now.applyTo(asked)
		switch {
		case len(q) == 0 || q[0].spec == to:
			return nil
		case q[0].spec != from:
			holder, ok, err := t.Get(ctx, dir+"/"+q[0].name)
			if err != nil {
				return err
			}
			if !ok {
				continue // it has left since
			}
			rec, ours := decodeRecord(holder.Data)
			h, _ := t.holder(q[0], rec, ours)
			return &store.KindError{Name: name, Asked: kindOf(from), InUse: kindOf(q[0].spec), Holder: h}
		case slices.ContainsFunc(asked, func(c numbered) bool { return c.spec == from && from == rule.Mutex }):
			return fmt.Errorf("%w: lock %q: its holder and its waiters take it for a mutex, and ZooKeeper's other clients may be among them: resize it when it is free", store.ErrUnsupported, name)
		}
		_, err = session.Again(ctx, t.Session, func(c *zk.Conn) (*zk.Stat, error) {
			return c.Set(dir, now.add(from, to, asked).encode(), n.Version)
		})
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if !errors.Is(err, zk.ErrBadVersion) { // which may come from this very change
			return explain(err, dir)
		}
	}
}

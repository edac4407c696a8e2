package zkstore

import (
	"context"
	"slices"

	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// watched is what the waiter at a place watches.
type watched struct {
	before hurdle
	set    *session.Watch // nil: nothing is watched
	// data is that of the place that is watched, as it was then.
	data []byte
}

// changed returns a channel that is closed when there is a change. Something is watched.
func (w *watched) changed() <-chan struct{} { return w.set.Over }

func (w *watched) unwatch() {
	w.set.Stop()
	w.set = nil
}

// watchFor returns a watch for the hurdle of a place in dir.
func watchFor(dir string, h hurdle) *session.Watch {
	if h == anyPlace {
		return session.WatchList(dir)
	}
	return session.WatchNode(dir + "/" + h.name)
}

// watch watches what the waiter has to wait for. again reports that it has changed since q
// was read.
func (p *place) watch(ctx context.Context, q queue, h hurdle) (again bool, err error) {
	if p.set != nil && p.before == h {
		return false, nil
	}
	p.unwatch()
	of := watchFor(p.dir, h)
	sent, err := p.Send(ctx, of.Request())
	if err != nil {
		return false, err
	}
	answers, err := sent.Wait(ctx)
	if err != nil {
		of.Stop()
		return false, err
	}
	return p.watching(of, answers[0], q, h)
}

// watching takes the answer to the request of a watch.
func (p *place) watching(of *session.Watch, a session.Answer, q queue, h hurdle) (again bool, err error) {
	var data []byte
	switch {
	case session.Broken(a.Err):
		again = true
	case h == anyPlace:
		var names []string
		names, err = a.Names()
		again = !slices.EqualFunc(queueOf(names), q, func(a, b numbered) bool { return a.name == b.name })
	default:
		n, ok, failed := a.Node()
		data, again, err = n.Data, !ok, failed
		if ok && hasSeats(p.spec) { // it may have got its slot just before
			rec, _ := decodeRecord(data)
			again = rec.Agreed && q.find(h.name) >= q.holders()
		}
	}
	if again || err != nil {
		of.Stop()
		return again, err
	}
	p.watched = watched{h, of, data}
	return false, nil
}

package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/gather"
	"github.com/leasehold-dev/leasehold/store"
)

// step is a request for a mutex, or a release, that others can go to the server with.
type step struct {
	lease   store.Lease
	release bool
	spare   int
	durable bool

	// These are set when done is closed.
	done chan struct{}
	outcome
}

// outcome is what came of a step that may have gone with others.
type outcome struct {
	// answered is set if the step needs no call of its own: the batch has answered it, or
	// failed and may have had an effect.
	answered bool
	answer   answer
	maybe    bool // as in call
	err      error
	// alone is set while the step is made alone.
	alone *gather.Sender[*step]
}

// batches sends steps to the server together: those that have to be on disk and, so that these do
// not have to wait for it, the others.
type batches struct {
	durable, others *gather.Sender[*step]
	prospects       prospects
}

// mostSteps is how many steps go together. The rows of their locks stay locked until the last of
// them is made.
const mostSteps = 32

func newBatches(c *caller) *batches {
	// With 16 goroutines that each have a lock of their own, on two cores, a process and its server
	// take 155 us for a lock and an unlock. With four senders, they take 190, and without batches 275.
	limits := gather.Limits{Alone: 4, Senders: 2, Steps: mostSteps}
	sender := func() *gather.Sender[*step] { return gather.NewSender(c.gate, limits, c.sendBatch) }
	return &batches{durable: sender(), others: sender()}
}

// together makes a step with others, if there are others. The caller is counted at the gate. If
// the step is not answered, it makes the step alone. Then it calls apart.
func (c *caller) together(ctx context.Context, s step) outcome {
	if c.calls.batch == nil || !s.lease.Kind.Normal().IsMutex() || s.lease.Attempt != "" {
		return outcome{}
	}
	if s.release {
		c.batches.prospects.learn(s.lease.Name)
	}
	sender := c.batches.others
	if s.durable {
		sender = c.batches.durable
	}
	if sender.Alone() {
		return outcome{alone: sender}
	}
	if !c.batches.prospects.good(s.lease.Name) {
		return outcome{}
	}
	one := new(step)
	*one = s
	one.done = make(chan struct{})
	sender.Add(one)
	return c.outcomeOf(ctx, sender, one)
}

// apart ends a step that together returned.
func (o outcome) apart() {
	if o.alone != nil {
		o.alone.Left()
	}
}

// outcomeOf waits for the batch of a step. The step may have been made if ctx ends after it was sent.
func (c *caller) outcomeOf(ctx context.Context, sender *gather.Sender[*step], s *step) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Timeout, errLimit)
	defer cancel()
	select {
	case <-s.done:
		return s.outcome
	case <-ctx.Done():
	}
	unsent := sender.Withdraw(s)
	return outcome{answered: true, maybe: !unsent, err: &endedError{context.Cause(ctx), ctx.Err(), ctx.Err(), unsent}}
}

// sendBatch sends one batch. A step queues until there is a connection. If the batch fails
// without an effect, its steps are made alone.
func (c *caller) sendBatch(take func() []*step) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.o.Timeout, errLimit)
	defer cancel()
	conn, err := c.pool.conn(ctx)
	batch := take()
	if len(batch) == 0 { // all have left the queue
		if err == nil {
			conn.Close()
		}
		return
	}
	batch = releasesFirst(batch)
	outcomes := make([]outcome, len(batch))
	maybe := false
	if err == nil {
		maybe, err = c.callOn(ctx, conn, c.calls.batch, func(r row) error { return scanStep(r, outcomes) }, batchArgs(batch)...)
		c.putBack(conn, err)
	}
	for i, s := range batch {
		switch s.outcome = outcomes[i]; {
		case err != nil:
			// If trying again can help, the step shows what the batch has done.
			s.outcome = outcome{answered: maybe && !c.engine.fault(err).again, maybe: maybe, err: ended(ctx, err)}
		case !s.answered:
			c.batches.prospects.left(s.lease.Name)
		}
	}
	for _, s := range batch {
		close(s.done)
	}
}

func releasesFirst(batch []*step) []*step {
	slices.SortStableFunc(batch, func(a, b *step) int {
		switch {
		case a.release == b.release:
			return 0
		case a.release:
			return -1
		}
		return 1
	})
	return batch
}

// batchArgs returns the arguments of the procedure batch for steps with the releases first.
func batchArgs(batch []*step) []any {
	var ended, endedOwners, names, owners, metas, ttls, spares []byte
	item := func(list []byte) []byte {
		if len(list) > 0 {
			list = append(list, ' ')
		}
		return list
	}
	bytes := func(list []byte, b string) []byte { return hex.AppendEncode(append(item(list), `\x`...), []byte(b)) }
	durable := false
	for _, s := range batch {
		if s.release {
			ended, endedOwners = bytes(ended, s.lease.Name), append(item(endedOwners), s.lease.Owner...)
			continue
		}
		names, owners, metas = bytes(names, s.lease.Name), append(item(owners), s.lease.Owner...), bytes(metas, s.lease.Meta)
		ttls, spares = strconv.AppendInt(item(ttls), micros(s.lease.TTL), 10), strconv.AppendInt(item(spares), int64(s.spare), 10)
		durable = durable || s.durable
	}
	return []any{string(ended), string(endedOwners), string(names), string(owners), string(metas), string(ttls), string(spares), durable}
}

// scanStep scans the answer to one step of a batch.
func scanStep(r row, outcomes []outcome) error {
	var n int64
	var a answer
	var token, endsIn sql.NullInt64
	var owner sql.NullString
	var meta hexadecimal
	if err := r.Scan(&n, &a.verdict, &token, &a.spare, &endsIn, &owner, &meta, &a.at); err != nil {
		return err
	}
	if n < 1 || n > int64(len(outcomes)) {
		return fmt.Errorf("an answer to step %d of a batch of %d", n, len(outcomes))
	}
	a.token, a.endsIn = fence.Token(token.Int64), duration(endsIn.Int64)
	if owner.Valid {
		a.holder = store.DecodeHolder(owner.String, string(meta))
	}
	outcomes[n-1] = outcome{answered: true, answer: a}
	return nil
}

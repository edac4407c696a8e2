package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/leasehold-dev/leasehold/internal/majority"
	"github.com/leasehold-dev/leasehold/store"
)

// call is one command for one node, and who wants the answer: a vote, or
// somebody who looks at the whole of it.
type call struct {
	command []string
	timeout time.Duration
	to      majority.Receiver
	tag     int
	look    poll
}

// reply is what the node made of a call.
type reply struct {
	// outcome is Granted when the node ran the command: see msg.
	outcome store.Outcome
	// sent says whether the command may have been applied although outcome is
	// not Granted.
	sent bool
	err  error
	msg  rueidis.RedisMessage
}

// Addr implements majority.Node.
func (n *node) Addr() string { return n.addr }

// Put implements majority.Node.
func (n *node) Put(c majority.Call) error {
	return n.put(call{command: c.Payload.([]string), timeout: c.Timeout, to: c.To, tag: c.Tag})
}

func (n *node) put(c call) error {
	n.s.inFlight.Add(1)
	err := n.line.put(c)
	if err != nil {
		n.s.inFlight.Add(-1)
	}
	return err
}

// settle hands a reply out. What that leads to is put in line before the call
// counts as no longer in flight.
func (n *node) settle(c call, r reply) {
	if c.look != nil {
		c.look <- looked{n.index, r}
	} else {
		c.to.Answer(n.index, c.tag, r.answer(draws(c.command)))
	}
	n.s.inFlight.Add(-1)
}

// maxBatch commands are written to a node at once.
const maxBatch = 512

// send is the node's goroutine: it takes whatever is in line, writes it in one
// go and hands the answers out.
func (n *node) send() {
	defer close(n.done)
	var batch []call
	var commands []rueidis.Completed
	for open := true; open; {
		<-n.line.ready
		runtime.Gosched() // let those who are about to put something get on board
		batch, open = n.line.take(batch, maxBatch)
		if len(batch) > 0 {
			commands = n.exchange(batch, commands[:0])
			clear(batch)
		}
	}
}

// exchange writes batch to the server and tells each receiver its answer.
func (n *node) exchange(batch []call, commands []rueidis.Completed) []rueidis.Completed {
	if err := n.connect(); err != nil {
		outcome, err := classify(err, n.opt.Dialer.Timeout)
		for _, c := range batch {
			n.settle(c, reply{outcome: outcome, err: err})
		}
		return commands
	}
	var timeout time.Duration
	for _, c := range batch {
		timeout = max(timeout, c.timeout)
		commands = append(commands, n.build(c.command))
	}
	ctx, cancel := context.WithTimeout(n.ctx, timeout)
	defer cancel()
	results := n.client.DoMulti(ctx, commands...)
	n.teach(ctx, batch, results)
	for i, c := range batch {
		r := reply{outcome: store.Granted}
		var err error
		if r.msg, err = results[i].ToMessage(); err != nil && !rueidis.IsRedisNil(err) {
			r.outcome, r.err = classify(err, timeout)
			_, answered := rueidis.IsRedisErr(err)
			r.sent = !answered
			n.suspect = n.suspect || !answered
		}
		n.settle(c, r)
	}
	if !n.suspect {
		n.used = time.Now()
	}
	return commands
}

func (n *node) build(command []string) rueidis.Completed {
	return n.client.B().Arbitrary(command[0]).Args(command[1:]...).Build()
}

// teach sends those scripts by text which the server did not know by hash, in
// the same order: somebody flushed its scripts since learn.
func (n *node) teach(ctx context.Context, batch []call, results []rueidis.RedisResult) {
	var which []int
	var again []rueidis.Completed
	for i, r := range results {
		if e, ok := rueidis.IsRedisErr(r.Error()); ok && e.IsNoScript() {
			which = append(which, i)
			again = append(again, n.build(byText(batch[i].command)))
		}
	}
	if len(again) == 0 {
		return
	}
	for i, r := range n.client.DoMulti(ctx, again...) {
		results[which[i]] = r
	}
}

// classify says what a failed command means, in words that name no secret.
// timeout is how long it was waited.
func classify(err error, timeout time.Duration) (store.Outcome, error) {
	if e, ok := rueidis.IsRedisErr(err); ok {
		return classifyReply(e.Error())
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		// Not wrapped: it is not the caller's deadline that passed.
		return store.TimedOut, fmt.Errorf("no answer within %v", timeout)
	case errors.Is(err, context.Canceled), errors.Is(err, rueidis.ErrClosing):
		return store.Unreachable, store.ErrClosed
	case errors.Is(err, errSameServer):
		return store.Refused, err
	}
	return store.Unreachable, err
}

// classifyReply says what an error reply means and what to do about it. Older
// servers put the code of an error inside a script behind other words, so it
// is looked for anywhere.
func classifyReply(reply string) (store.Outcome, error) {
	for _, k := range []struct {
		code, advice string
		outcome      store.Outcome
	}{
		{"WRONGTYPE", "the key holds something that is not a lock: choose another name, or delete the key", store.WrongType},
		{"LOADING", "the server is still reading its data: wait until it is up", store.Loading},
		{"WRONGPASS", "check the user name and the password", store.Refused},
		{"NOAUTH", "the server asks for a password: put it into the URL, as in redis://:password@host", store.Refused},
		{"NOPERM", "the user lacks a permission: see the ACL rule in the documentation", store.Refused},
		{"OOM", "the server is out of memory (maxmemory)", store.Refused},
		{"READONLY", "the server is a replica: use its master, and independent masters for a quorum", store.Refused},
		{"MISCONF", "the server refuses writes because it can not save its data", store.Refused},
		{"MASTERDOWN", "the server is a replica that lost its master", store.Refused},
		{"CLUSTERDOWN", "the server's cluster is down", store.Refused},
		{"MOVED", "the server is part of a cluster, which does not work as a node: use independent servers", store.Refused},
		{"BUSY", "the server is busy running somebody's script", store.Refused},
	} {
		if strings.Contains(reply, k.code) {
			return k.outcome, fmt.Errorf("%s (%s)", reply, k.advice)
		}
	}
	return store.Refused, errors.New(reply)
}

func isDenied(reply string) bool { return strings.Contains(reply, "NOPERM") }

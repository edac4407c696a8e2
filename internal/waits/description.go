package waits

import (
	"os"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// describer makes the description of a client that its requests carry. Tools that show the
// holder of a lock show it.
type describer struct {
	host string
	pid  int
	last atomic.Pointer[description]
}

// description is what a client last said of itself. It is the same for all attempts
// within a second.
type description struct {
	purpose string
	trace   string
	renewed bool
	since   int64
	text    string
}

func (d *describer) init() {
	d.host, _ = os.Hostname() // empty where unknown
	d.pid = os.Getpid()
}

// Describe returns the description of an attempt: this process, the purpose, whether the
// lease is renewed, and the trace if there is room for it.
func (c *Queues) Describe(purpose, trace string, renewed bool) string {
	d := &c.describer
	now := time.Now()
	if l := d.last.Load(); l != nil && l.since == now.Unix() && l.purpose == purpose && l.trace == trace && l.renewed == renewed {
		return l.text
	}
	h := store.Holder{Host: d.host, PID: d.pid, Purpose: purpose, Since: now, Trace: trace, Unrenewed: !renewed}
	text := h.Encode()
	if len(text) > store.MaxMeta {
		h.Trace = "" // a lock is worth more than a link
		text = h.Encode()
	}
	d.last.Store(&description{purpose: purpose, trace: trace, renewed: renewed, since: now.Unix(), text: text})
	return text
}

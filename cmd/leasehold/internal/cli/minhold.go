package cli

import (
	"fmt"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
)

// waitMinHold waits until the lock may be released or is lost, and renews it meanwhile. It
// returns false if a signal asks the program to end: the store then keeps the
// lock for the rest of the time. If the store cannot keep it for that long (most;
// 0 means no limit), the first signal only prints a message, and the second ends
// the wait.
func (p *program) waitMinHold(sigs *signals, l lease, until time.Time, most time.Duration) bool {
	rest := time.Until(until)
	if rest <= 0 { // also if the command never ran
		l.waiveMinHold()
		return true
	}
	p.sayHeld(l, rest)
	defer p.voice.Status("")
	over := time.NewTimer(rest)
	defer over.Stop()
	for asked := false; ; {
		select {
		case <-over.C:
			l.waiveMinHold()
			return true
		case <-l.Done():
			return true
		case s := <-sigs.ch:
			sig, ok := s.(syscall.Signal)
			if !ok || !runner.Ends(sig) {
				continue
			}
		}
		rest = time.Until(until)
		if asked || most == 0 || rest <= most {
			return false
		}
		asked = true
		p.voice.Error("%s: held for %s more (--min-hold), longer than the store keeps a lock by itself (max_ttl, %v): send the signal again to exit now",
			l.names(), voice.Brief(rest), most)
	}
}

// sayHeld reports that the lock stays held although the command has ended.
func (p *program) sayHeld(l lease, rest time.Duration) {
	text := fmt.Sprintf("the command has ended; %s: held for %s more (--min-hold)", l.names(), voice.Brief(rest))
	if p.voice.Screen {
		p.voice.Status(text)
	} else {
		p.voice.Note("%s", text)
	}
}

package sim

import "time"

// planFaults has the faults of the script happen, and then the calm.
func (w *world) planFaults() {
	for _, f := range w.script.Faults {
		w.at(prologue+f.at(), outside, func() { w.fault(f) })
		w.calmAt = max(w.calmAt, w.overAt(f))
	}
	w.calmAt = prologue + max(w.calmAt, w.script.span()) + 2*time.Second
	w.at(w.calmAt, outside, w.becalm)
	w.patience = w.calmAt + w.enough()
}

// recordFault records that a fault begins.
func (w *world) recordFault(f Fault) {
	w.hist.mix(factSay)
	w.hist.mixText(string(f.Kind))
	if w.hist.keep {
		w.hist.write("", "FAULT %s", f)
	}
}

// overAt is when nothing is left of a fault.
func (w *world) overAt(f Fault) time.Duration {
	end := f.at() + f.last()
	switch f.Kind {
	case Boot:
		end += time.Duration(f.Size) * time.Millisecond
	}
	switch f.Kind {
	case Crash, Wipe, Boot, Replace, Replicate:
		end += w.script.quarantine() * 102 / 100 // by the slowest clock, set back
		end += backOften * backMost * time.Millisecond
	}
	if f.Kind == Switch {
		end += 2*w.script.quarantine() + 2*time.Second
	}
	if f.Kind == StepAhead {
		end += 2 * w.script.quarantine()
	}
	if f.Kind == Move {
		end += 3 * f.last()
	}
	if f.Kind == Fade {
		end += f.last()
	}
	if f.Kind == Cut || f.Kind == Fade || f.Kind == Delay || f.Kind == Slow {
		end += 2 * time.Duration(f.Size) * time.Millisecond
	}
	return end
}

// fault begins one, and plans its end.
func (w *world) fault(f Fault) {
	w.recordFault(f)
	size := time.Duration(f.Size) * time.Millisecond
	switch f.Kind {
	case Delay:
		w.forLinks(f, func(l *link) { l.extra += size }, func(l *link) { l.extra -= size })
	case Fade:
		w.forLinks(f, func(l *link) { l.extra += size }, func(l *link) { l.extra -= size; l.held++ })
		f.For *= 2
		w.forLinks(f, func(*link) {}, func(l *link) { l.held--; l.heal() })
	case Hold:
		w.forLinks(f, func(l *link) { l.held++ }, func(l *link) { l.held--; l.heal() })
	case Deaf:
		w.forLinks(f, func(l *link) { l.deaf++ }, func(l *link) { l.deaf--; l.heal() })
	case Full:
		w.forLinks(f, func(l *link) { l.noSpace++; l.fill() }, func(l *link) { l.noSpace--; l.fill() })
	case Cut:
		w.forLinks(f, func(l *link) { l.breaks(size) }, nil)
	case Replay:
		w.forLinks(f, func(l *link) { l.replay(f.Size) }, nil)
	case Slow:
		w.forNodes(f, func(n *node) { n.slow += size }, func(n *node) { n.slow -= size })
	case Ail:
		code := troubles[f.Size%len(troubles)]
		w.forNodes(f, func(n *node) { n.ails[code] = true; n.ailing() }, func(n *node) { n.ails[code] = false; n.ailing() })
	case Refuse:
		w.forLinks(f, func(l *link) {
			for _, s := range l.streams {
				s.reset()
			}
			l.cut++
		}, func(l *link) { l.cut-- })
	case Crash:
		w.forNodes(f, func(n *node) { n.crash(f.last(), size) }, nil)
	case Boot:
		w.forNodes(f, func(n *node) { n.boot(size, f.last()) }, nil)
	case Replace:
		w.forNodes(f, func(n *node) { n.replaced(size) }, nil)
	case Replicate:
		w.forNodes(f, func(n *node) {
			if of := w.nodes[(n.index+1)%len(w.nodes)]; f.Size == 0 {
				n.becomesReplica(of, f.last())
			} else {
				n.server.Rewind(size)
				n.becomesReplica(n, f.last())
			}
		}, nil)
	case Switch:
		go w.operators[1].replace()
		w.stirred = true
	case Wipe:
		w.forNodes(f, func(n *node) { n.wipe() }, nil)
	case StepBack:
		w.forNodes(f, func(n *node) {
			if n.backs++; n.backs <= backOften {
				n.steps -= min(size, backMost*time.Millisecond)
				n.doubt(2 * w.script.quarantine())
			}
		}, nil)
	case StepAhead:
		w.forNodes(f, func(n *node) {
			n.steps += size
			w.trace.jumped(n)
			n.discounted = w.now() + w.script.longest()
			n.doubt(2*w.script.quarantine() + w.script.longest())
		}, nil)
	case Forget:
		w.forNodes(f, func(n *node) { n.forget() }, nil)
	case WallClock:
		w.forClients(f, func(c *client) { c.wrong.Store(int64(f.Size) * int64(time.Second)) })
	case Pause:
		w.forClients(f, func(c *client) { c.pause(f.last(), f.Size == 1) })
	case Move:
		w.forClients(f, func(c *client) {
			c.moving = &f
			w.after(f.last(), outside, func() {
				if c.moving == &f {
					c.moving = nil
				}
			})
		})
	case Kill:
		w.forClients(f, func(c *client) { c.kill() })
	case Doze:
		w.sleep(f.last())
	}
}

func (w *world) forNodes(f Fault, begin, end func(*node)) {
	for _, n := range w.nodes {
		if f.Node != 0 && f.Node != n.index+1 {
			continue
		}
		begin(n)
		if end != nil {
			w.after(f.last(), outside, func() { end(n) })
		}
	}
}

func (w *world) forClients(f Fault, begin func(*client)) {
	for _, c := range w.clients {
		if f.Client == 0 || f.Client == c.index+1 {
			begin(c)
		}
	}
}

func (w *world) forLinks(f Fault, begin, end func(*link)) {
	for c := range w.everybody {
		if f.Client != c.index+1 && (f.Client != 0 || c.operates()) {
			continue
		}
		w.forNodes(f, func(n *node) { begin(c.links[n.index]) }, nil)
		if end != nil {
			w.forNodes(f, func(n *node) {
				l := c.links[n.index]
				w.after(f.last(), outside, func() { end(l) })
			}, nil)
		}
	}
}

// sleep suspends all client machines.
func (w *world) sleep(d time.Duration) {
	if w.dozing || d < grain {
		return
	}
	w.dozing = true
	w.doze(d)
	w.dozing = false
	w.judge.slept()
	for _, c := range w.clients {
		c.wokeAt = w.now()
		if c.paused() { // and stays so until now at least
			c.woken.Store(max(c.woken.Load(), int64(c.reads())))
		}
	}
	w.hist.say("the clients' machines wake up after %v", d)
}

package clock

import (
	"sync/atomic"
	"time"
)

// calculator calculates CLOCK_BOOTTIME from CLOCK_MONOTONIC, which Go reads without a system
// call. A lock and unlock reads the clock five times, twice with the client's mutex held. On a
// virtual machine a system call takes 1 microsecond, and a calculation 0.1.
//
// CLOCK_BOOTTIME and CLOCK_MONOTONIC drift apart only by a suspend, which moves CLOCK_REALTIME
// away from CLOCK_MONOTONIC by as much. So the calculator also reads CLOCK_REALTIME. If that has
// kept its distance, the machine was not suspended. Otherwise the machine was suspended or the
// time of day was set, and the calculator asks the kernel. (The kernel corrects the speed of
// all three clocks at once.) A suspend could hide behind a step of the time of day that undoes
// it to the microsecond, so the calculator also asks after each 10 milliseconds.
//
// A calculated reading is never later than CLOCK_BOOTTIME, and at most 70 microseconds earlier.
// Readings never go back. If the machine was not suspended between two readings, their
// difference is not shorter than the time between them.
type calculator struct {
	// read reports as well whether the readings are fake, as they are in a bubble of
	// testing/synctest. Kept as offsets, they would move the clock of the process by decades.
	read     func() (mono, wall int64, fake bool)
	boottime func() int64
	last     atomic.Pointer[offsets]
}

// offsets are the distances of clocks from CLOCK_MONOTONIC.
type offsets struct {
	at   int64 // CLOCK_MONOTONIC when they were measured
	wall int64 // of CLOCK_REALTIME
	boot int64 // of CLOCK_BOOTTIME, or a little less
}

const (
	recheck = int64(10 * time.Millisecond)
	// precision is how exactly offsets are measured.
	precision = int64(20 * time.Microsecond)
	// leastStep is the shortest suspend or step of the time of day that is noticed at once. A
	// goroutine that is interrupted between two clocks sees a step, too.
	leastStep = int64(50 * time.Microsecond)
)

func (c *calculator) now() Instant {
	mono, wall, fake := c.read()
	if fake {
		return Instant(c.boottime())
	}
	if o := c.last.Load(); o != nil && o.usable(mono, wall) {
		return Instant(mono + o.boot)
	}
	return c.measure(mono)
}

// usable reports whether the machine was not suspended since o was measured.
func (o *offsets) usable(mono, wall int64) bool {
	age, step := mono-o.at, wall-mono-o.wall
	return 0 <= age && age < recheck && -leastStep < step && step < leastStep
}

// measure reads CLOCK_BOOTTIME between two readings of CLOCK_MONOTONIC, of which before is the
// first. If it is interrupted between them again and again, the result serves one reading only.
func (c *calculator) measure(before int64) Instant {
	for try := 0; ; try++ {
		boot := c.boottime()
		mono, wall, _ := c.read()
		exact := mono-before < precision
		o := &offsets{at: mono, wall: wall - mono, boot: boot - mono}
		if !exact {
			o.at -= recheck
		}
		c.keep(o)
		if exact || try == 3 {
			return Instant(mono + o.boot)
		}
		before = mono
	}
}

// keep stores o. Its distance of CLOCK_BOOTTIME never decreases: otherwise readings could go back
// when several goroutines measure at once and the least exact of them is last.
func (c *calculator) keep(o *offsets) {
	for {
		last := c.last.Load()
		if last != nil {
			o.boot = max(o.boot, last.boot)
		}
		if c.last.CompareAndSwap(last, o) {
			return
		}
	}
}

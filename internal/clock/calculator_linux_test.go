package clock

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// machine has the clocks of a kernel. Each reading of a clock can be interrupted.
type machine struct {
	mono, suspended, day int64
	interrupt            func() int64
	asked                int // readings by a system call
}

func (m *machine) calculator() *calculator {
	return &calculator{read: m.read, boottime: m.boottime}
}

// run is time that passes while the machine runs.
func (m *machine) run(d int64) { m.mono += d }

func (m *machine) suspend(d int64) {
	m.suspended += d
	m.day += d
}

func (m *machine) setDay(step int64) { m.day += step }

func (m *machine) truth() int64 { return m.mono + m.suspended }

func (m *machine) read() (mono, wall int64, fake bool) {
	m.run(m.interrupt())
	wall = m.mono + m.day
	m.run(m.interrupt())
	return m.mono, wall, false
}

func (m *machine) boottime() int64 {
	m.asked++
	m.run(m.interrupt())
	return m.truth()
}

func uninterrupted() int64 { return int64(100 * time.Nanosecond) }

// Whatever happens to the machine, readings are what calculator promises.
func TestCalculatedReadings(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		often := 1 + r.IntN(50)
		m := &machine{mono: r.Int64N(1e12), suspended: r.Int64N(1e12), day: r.Int64N(1e18)}
		m.interrupt = func() int64 {
			if r.IntN(often) == 0 {
				return r.Int64N(int64(20 * time.Millisecond))
			}
			return r.Int64N(int64(time.Microsecond))
		}
		c := m.calculator()
		var last, lastDone int64
		asleep := true // since the last reading, or there was none
		for range 2000 {
			switch r.IntN(8) {
			case 0:
				m.suspend(leastStep + r.Int64N(int64(time.Hour)))
				asleep = true
			case 1:
				m.setDay(r.Int64N(int64(time.Hour)) - int64(30*time.Minute))
			case 2:
				m.run(r.Int64N(int64(time.Second)))
			default:
				m.run(r.Int64N(int64(time.Millisecond)))
			}
			began := m.truth()
			got := int64(c.now())
			if got > m.truth() || got < began-precision-leastStep {
				t.Fatalf("seed %d: %d, want at most %d and at least %d", seed, got, m.truth(), began-precision-leastStep)
			}
			if got < last || !asleep && got-last < began-lastDone {
				t.Fatalf("seed %d: a reading is %d after the last one, want at least %d", seed, got-last, began-lastDone)
			}
			last, lastDone, asleep = got, m.truth(), false
		}
	}
}

// A suspend that a step of the time of day hides is noticed with the next system call.
func TestSuspendBehindAStepOfTheTimeOfDay(t *testing.T) {
	m := &machine{interrupt: uninterrupted}
	c := m.calculator()
	c.now()
	m.suspend(int64(time.Hour))
	m.setDay(-int64(time.Hour))
	m.run(recheck)
	if began, got := m.truth(), int64(c.now()); got < began-precision {
		t.Errorf("a reading is %v late", time.Duration(began-got))
	}
}

// If several goroutines measure at once, the most exact result stays.
func TestLessExactOffsetsAreRaised(t *testing.T) {
	m := &machine{interrupt: uninterrupted}
	c := m.calculator()
	before := c.now()
	late := &offsets{at: m.mono, wall: m.day, boot: -precision / 2}
	c.keep(late)
	if after := c.now(); after < before {
		t.Errorf("a reading went back by %v", before.Sub(after))
	}
}

// Readings make a system call only now and then.
func TestCalculatedReadingsAreCheap(t *testing.T) {
	m := &machine{interrupt: uninterrupted}
	c := m.calculator()
	const readings = 1000
	for range readings {
		c.now()
		m.run(recheck / 100)
	}
	if m.asked > readings/50 {
		t.Errorf("%d system calls for %d readings", m.asked, readings)
	}
}

// The real clocks are as the calculator expects.
func TestSystemClockIsCalculatedFromRealOnes(t *testing.T) {
	for range 100_000 {
		before, got, after := readBoottime(), int64(systemNow()), readBoottime()
		if got > after || got < before-precision-leastStep {
			t.Fatalf("a reading is %v after CLOCK_BOOTTIME and %v before it", time.Duration(got-before), time.Duration(after-got))
		}
	}
}

func BenchmarkSystemClock(b *testing.B) {
	b.Run("calculated", func(b *testing.B) {
		for b.Loop() {
			systemNow()
		}
	})
	b.Run("asked", func(b *testing.B) {
		for b.Loop() {
			readBoottime()
		}
	})
}

// A bubble of testing/synctest has a fake time of day. It must not move the clock of the process.
func TestReadInABubble(t *testing.T) {
	for _, c := range []*calculator{&system, {read: readCheapClocks, boottime: readBoottime}} {
		read := func(where string) {
			t.Helper()
			before, now, after := readBoottime(), int64(c.now()), readBoottime()
			if now < before-int64(100*time.Microsecond) || now > after {
				t.Errorf("%s: %d, want a reading from %d to %d", where, now, before, after)
			}
		}
		synctest.Test(t, func(*testing.T) { read("in a bubble") })
		read("after a bubble")
		synctest.Test(t, func(*testing.T) { read("in a bubble after that") })
		read("at the end")
	}
}

package longest

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Nothing is granted until the record was read again, and then for as long as it says.
func TestTTL(t *testing.T) {
	lost, later := clock.Instant(time.Hour), clock.Instant(2*time.Hour)
	c := New(2 * time.Second)
	c.Note(0, lost-1)
	if d := c.Since(lost, later); d != time.Hour+time.Second {
		t.Errorf("before the record is read: %v, want a second more than has passed", d)
	}
	c.Note(0, later)
	if d := c.Since(lost, later); d != 2*time.Second {
		t.Errorf("with a maximum: %v, want that", d)
	}
	if c.Covers(2*time.Minute) || !c.Covers(time.Minute) {
		t.Error("a minute is to be allowed for, and two are not")
	}
	c.Note(10*time.Minute, later)
	if d := c.Since(lost, later); d != 10*time.Minute || !c.Covers(d) {
		t.Errorf("with a record of 10m: %v, want that, and no other record", d)
	}
	c.Note(0, later)
	if d := c.Since(lost, later); d != 10*time.Minute || c.Covers(d) {
		t.Errorf("with a record of 10m that was lost: %v, want that, and a new record", d)
	}
	if d := New(0).Since(0, 0); d != Least {
		t.Errorf("without a maximum and a record: %v, want %v", d, Least)
	}
}

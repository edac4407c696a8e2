package resize

// state is one moment of the world. All times are ticks from the present moment, so what
// differs only in when it happens is one state.
type state struct {
	nodes   [maxNodes]node
	leases  [maxLeases]lease
	resizes [maxResizers]resize
	crashes uint8 // left
	// legitimate are the numbers (a bit each) that permits may be granted by to an attempt that
	// begins now.
	legitimate uint8
}

// anyNumber is legitimate while nobody uses the lock: it has no number then.
const anyNumber uint8 = 0xff

// node is what a node keeps, and the messages between it and the clients.
type node struct {
	name         uint8 // for traces: it makes no difference
	quarantined  uint8
	number, kept uint8 // of permits; 0: none
	setter       uint8
	seat         seat
	seatFor      uint8
	cells        [maxLeases]cell
	resizes      [maxResizers]asks
}

// stage is the phase of a message.
type stage uint8

const (
	idle  stage = iota
	asked       // the request is under way
	saidYes
	saidNo
)

// cell is one attempt at one node.
type cell struct {
	key, slot, tombstone uint8 // ticks left; the slot plus one
	acquire              stage
	granted              uint8 // the slot that the answer names, plus one
	extend               stage
	own, numbers         uint8 // that the answer names: the node's, and those for renewals, a bit each
	heal                 uint8 // that is under way, by its number; 0: none
}

// asks are the requests of a resize at one node.
type asks struct{ seat, set stage }

// life is the phase of an attempt and its lease.
type life uint8

const (
	unused life = iota
	asking
	holding
	over
)

type lease struct {
	life     life
	age      uint8 // ticks since the attempt began
	left     uint8 // ticks of validity
	slot     uint8 // plus one
	renewing bool
	renewed  uint8 // ticks since the renewal began
	renewals uint8
	allowed  uint8 // numbers that were legitimate since the attempt began
}

// phase is that of a resize.
type phase uint8

const (
	waiting phase = iota
	seating
	setting
	worked
	failed    // without having asked a node to set the number
	mayFailed // after it has
)

type resize struct {
	phase phase
	age   uint8 // ticks since it has asked to set the number, or since it ended
}

// begin returns the world's first state.
func (m *Model) begin() (st state) {
	st.crashes = m.Crashes
	first := uint8(0)
	for n := range st.nodes {
		st.nodes[n].name = uint8(n) + 1
	}
	for i := range st.leases {
		if m.Held[i] == 0 {
			continue
		}
		first = m.Asks[i]
		st.leases[i] = lease{life: holding, left: m.TTL, slot: m.Slots[i] + 1}
		for n := range st.nodes {
			if nd := &st.nodes[n]; m.Held[i]&(1<<n) != 0 {
				nd.number, nd.cells[i].key, nd.cells[i].slot = first, m.TTL, m.Slots[i]+1
			}
		}
	}
	st.legitimate = 1 << first
	if m.Late {
		st.resizes[1].phase = failed
	}
	for n := range st.nodes {
		switch nd := &st.nodes[n]; {
		case m.Told:
			st.resizes[0].phase, st.legitimate = worked, 1<<m.Resizes[0][1]
			nd.number, nd.kept, nd.setter = m.Resizes[0][1], m.Keep, 1
			nd.seat, nd.seatFor = m.seat(0), m.seatTTL()
			nd.seat.hasSet = true
			if c := &nd.cells[0]; m.Held[0]&(1<<n) == 0 {
				c.acquire, c.heal = asked, first
				if m.Late {
					nd.resizes[1].seat = asked
				}
			}
		case m.Seated:
			st.resizes[0].phase = seating
			nd.seat, nd.seatFor, nd.resizes[0].seat = m.seat(0), m.seatTTL(), saidYes
		}
	}
	return st
}

// seatTTL is for how long a resize has the seat.
func (m *Model) seatTTL() uint8 { return max(m.TTL, m.Seat) }

// seat is that of resize j.
func (m *Model) seat(j int) seat {
	return seat{who: uint8(j) + 1, from: m.Resizes[j][0], to: m.Resizes[j][1]}
}

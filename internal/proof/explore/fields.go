package explore

// fields puts small numbers into one, and takes them out again.
type fields struct {
	word uint64
	at   uint
}

func (b *fields) put(v uint64, width uint) {
	if v>>width != 0 {
		panic("explore: a number too large for the room it has in a state")
	}
	b.word |= v << b.at
	b.at += width
}

func (b *fields) get(width uint) uint64 {
	v := b.word >> b.at & (1<<width - 1)
	b.at += width
	return v
}

func bit(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

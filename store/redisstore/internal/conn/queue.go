package conn

// Queue is a first-in, first-out queue that reuses its memory.
type Queue[T any] struct {
	ring  []T // its length is a power of two
	first int
	n     int
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return q.n }

// Push adds an item at the end.
func (q *Queue[T]) Push(v T) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = v
	q.n++
}

func (q *Queue[T]) grow() {
	ring := make([]T, max(16, 2*len(q.ring)))
	k := copy(ring, q.ring[q.first:])
	copy(ring[k:], q.ring[:q.first])
	q.ring, q.first = ring, 0
}

// Front returns the oldest item; nil if the queue is empty.
func (q *Queue[T]) Front() *T {
	if q.n == 0 {
		return nil
	}
	return &q.ring[q.first]
}

// At returns the i-th item; the oldest is the first.
func (q *Queue[T]) At(i int) *T { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

// Pop removes the oldest item; ok is false if the queue is empty.
func (q *Queue[T]) Pop() (v T, ok bool) {
	if q.n == 0 {
		return v, false
	}
	var none T
	v, q.ring[q.first] = q.ring[q.first], none
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	return v, true
}

// Advance moves the last item ahead of those directly before it for which passes returns true.
func (q *Queue[T]) Advance(passes func(*T) bool) {
	for i := q.n - 1; i > 0 && passes(q.At(i-1)); i-- {
		last, before := q.At(i), q.At(i-1)
		*last, *before = *before, *last
	}
}

// All iterates over the items, oldest first.
func (q *Queue[T]) All(yield func(*T) bool) {
	for i := range q.n {
		if !yield(q.At(i)) {
			return
		}
	}
}

// Remove removes the items for which removes returns true.
func (q *Queue[T]) Remove(removes func(*T) bool) {
	for range q.n {
		if v, _ := q.Pop(); !removes(&v) {
			q.Push(v)
		}
	}
}

package redisstore

// queue is a first-in, first-out queue that reuses its memory.
type queue[T any] struct {
	ring  []T // its length is a power of two
	first int
	n     int
}

func (q *queue[T]) push(v T) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = v
	q.n++
}

func (q *queue[T]) grow() {
	ring := make([]T, max(16, 2*len(q.ring)))
	k := copy(ring, q.ring[q.first:])
	copy(ring[k:], q.ring[:q.first])
	q.ring, q.first = ring, 0
}

// front returns the oldest item; nil if the queue is empty.
func (q *queue[T]) front() *T {
	if q.n == 0 {
		return nil
	}
	return &q.ring[q.first]
}

// at returns the i-th item; the oldest is the first.
func (q *queue[T]) at(i int) *T { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

func (q *queue[T]) pop() (v T, ok bool) {
	if q.n == 0 {
		return v, false
	}
	var none T
	v, q.ring[q.first] = q.ring[q.first], none
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	return v, true
}

// all iterates over the items, oldest first.
func (q *queue[T]) all(yield func(*T) bool) {
	for i := range q.n {
		if !yield(q.at(i)) {
			return
		}
	}
}

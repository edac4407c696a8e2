package faultproxy

import (
	"context"
	"net"
	"sync"
	"time"
)

type direction uint8

const (
	toServer direction = iota
	toClient
)

// item is something one side sent: bytes, or the end of the stream.
type item struct {
	data     []byte
	end      bool
	received time.Time
	seq      uint64
}

// queued is how many chunks are held back per direction. Beyond it the proxy
// stops reading, and the sender blocks as with a full window.
const queued = 1024

// lingering is how long a client has to notice that its connection has ended.
const lingering = 10 * time.Second

// link is one client's connection and the one to the server for it. Each
// direction has a goroutine that receives and one that passes on, with a queue
// between them, so that events are noticed while items are held back.
type link struct {
	proxy       *Proxy
	client      *net.TCPConn
	queues      [2]chan item // by direction
	ctx         context.Context
	cancel      context.CancelFunc
	connected   chan struct{} // closed when server is set
	clientEnded chan struct{} // closed when the client sends no more

	mu     sync.Mutex
	server *net.TCPConn // set once
	closed bool

	// Guarded by proxy.mu.
	holed    bool // some bytes were swallowed
	cutAfter int  // bytes of the reply until the cut; negative: no cut
}

func newLink(p *Proxy, client *net.TCPConn) *link {
	l := &link{
		proxy:       p,
		client:      client,
		queues:      [2]chan item{make(chan item, queued), make(chan item, queued)},
		connected:   make(chan struct{}),
		clientEnded: make(chan struct{}),
		cutAfter:    -1,
	}
	l.ctx, l.cancel = context.WithCancel(p.ctx)
	return l
}

// run runs until the link ends.
func (l *link) run() {
	defer l.proxy.forget(l)
	var pumps sync.WaitGroup
	pumps.Go(func() { l.receive(l.client, toServer) })
	pumps.Go(func() { l.passOn(toServer) })
	if l.connect() {
		pumps.Go(func() { l.receive(l.server, toClient) })
		pumps.Go(func() { l.passOn(toClient) })
	} else {
		l.close()
	}
	pumps.Wait()
	l.close()
	for dir := range l.queues {
		for len(l.queues[dir]) > 0 {
			l.lose(direction(dir), <-l.queues[dir])
		}
	}
}

// connect connects to the server. In a blackhole it first waits for the mode to
// end, so that a client cannot notice a server that is down. It returns false if
// there will be no connection.
func (l *link) connect() bool {
	for {
		dark, changed := l.proxy.dark()
		if !dark {
			break
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
			return false
		}
	}
	conn, err := new(net.Dialer).DialContext(l.ctx, "tcp", l.proxy.target)
	if err != nil {
		l.client.SetLinger(0) // a reset, as from a machine without such a server
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		conn.Close()
		return false
	}
	l.server = conn.(*net.TCPConn)
	close(l.connected)
	return true
}

// close closes both connections at once. Calling it again is harmless.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	l.cancel()
	l.client.Close()
	if l.server != nil {
		l.server.Close()
	}
}

// receive reads from one side until it ends.
func (l *link) receive(from *net.TCPConn, dir direction) {
	for end := false; !end; {
		buf := make([]byte, 32<<10)
		n, err := from.Read(buf)
		if n > 0 {
			l.enqueue(dir, item{data: buf[:n]})
		}
		// However a connection ends, what came before the end still counts.
		end = err != nil
	}
	if dir == toServer {
		close(l.clientEnded)
	}
	l.enqueue(dir, item{end: true})
}

func (l *link) enqueue(dir direction, it item) {
	it.received = time.Now()
	it.seq = l.proxy.arrived(dir, len(it.data))
	select {
	case l.queues[dir] <- it:
	case <-l.ctx.Done():
		l.lose(dir, it)
	}
}

func (l *link) lose(dir direction, it item) {
	l.proxy.count.lost[dir].Add(int64(len(it.data)))
}

// passOn handles what was received in one direction as the mode says, until the
// stream or the link ends.
func (l *link) passOn(dir direction) {
	broken := false // the receiver has ended, which the sender may not know yet
	for {
		var it item
		select {
		case it = <-l.queues[dir]:
		case <-l.ctx.Done():
			return
		}
		verdict, limit := deliver, 0
		if !broken {
			verdict, limit = l.await(dir, it)
		}
		switch {
		case verdict == drop || broken && !it.end:
			l.lose(dir, it)
		case verdict == deliverAndCut:
			l.write(dir, it, limit)
			l.proxy.count.cut.Add(1)
			l.hangUp()
			return
		case !it.end:
			broken = !l.write(dir, it, len(it.data))
		case dir == toClient:
			l.hangUp()
		case dir == toServer:
			l.finishRequests()
		}
		if it.end {
			return
		}
	}
}

// await waits until the item is no longer held, and returns what to do with it.
func (l *link) await(dir direction, it item) (verdict, int) {
	for {
		r := l.proxy.judge(l, dir, it)
		if r.verdict != hold {
			return r.verdict, r.limit
		}
		var due <-chan time.Time
		if r.wait > 0 {
			due = time.After(r.wait)
		}
		select {
		case <-r.changed:
		case <-due:
		case <-l.ctx.Done():
			return drop, 0
		}
	}
}

// write passes on the first n bytes of an item. It returns false if the receiver
// no longer accepts them.
func (l *link) write(dir direction, it item, n int) bool {
	to := l.client
	if dir == toServer {
		select {
		case <-l.connected:
			to = l.server
		case <-l.ctx.Done():
			l.lose(dir, it)
			return false
		}
	}
	_, err := to.Write(it.data[:n])
	if err != nil {
		l.lose(dir, it)
		return false
	}
	l.proxy.count.passed[dir].Add(int64(n))
	l.lose(dir, item{data: it.data[n:]})
	return true
}

// finishRequests closes the stream to the server. The client may still read
// replies.
func (l *link) finishRequests() {
	select {
	case <-l.connected:
		l.server.CloseWrite()
	case <-l.ctx.Done():
	}
}

// hangUp ends the link after the last reply. The server has ended and reads no
// more. The client gets a moment to notice: closing the connection while it sends
// would reset it and discard the last replies.
func (l *link) hangUp() {
	l.client.CloseWrite()
	l.server.Close()
	select {
	case <-l.clientEnded:
	case <-time.After(lingering):
	case <-l.ctx.Done():
	}
	l.close()
}

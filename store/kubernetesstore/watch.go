package kubernetesstore

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Watch implements recordstore.Watcher.
func (d *driver) Watch(ctx context.Context, key string) (<-chan recordstore.Item, error) {
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.leases("", url.Values{"watch": {"true"}, "fieldSelector": {"metadata.name=" + key}}), nil)
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header.Set("Accept", wireForm+";stream=watch")
	late := time.AfterFunc(d.client.Timeout, cancel)
	res, err := d.client.HTTP.Do(req)
	late.Stop()
	if err == nil && res.StatusCode != http.StatusOK {
		res.Body.Close()
		err = fmt.Errorf("watch: %s", res.Status)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	ch := make(chan recordstore.Item, 16)
	go func() {
		defer close(ch)
		defer cancel()
		defer res.Body.Close()
		in := bufio.NewReader(res.Body)
		for {
			event, err := next(in)
			if err != nil || event.text(1) == "ERROR" { // such as 410 Gone
				return
			}
			if it, ok := pushed(event); ok {
				select {
				case ch <- it:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return ch, nil
}

// next returns the next event of a watch.
func next(in io.Reader) (message, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxEvent {
		return nil, errMessage
	}
	event := make([]byte, n)
	if _, err := io.ReadFull(in, event); err != nil {
		return nil, err
	}
	return unwrap(event), nil
}

// maxEvent is how long an event can be. etcd keeps no object that is half as long.
const maxEvent = 4 << 20

// pushed returns what an event says, if it is about an object.
func pushed(event message) (it recordstore.Item, ok bool) {
	o, err := decode(event.inner(2).inner(1))
	if err != nil {
		return it, false
	}
	switch event.text(1) {
	case "ADDED", "MODIFIED":
		it, err = o.item("", 0)
	case "DELETED":
		it.Version = absent
		it.Floor, err = revision(o.meta.text(versionOf))
		it.Order = it.Floor
	default: // a bookmark
		return it, false
	}
	return it, err == nil
}

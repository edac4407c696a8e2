package kubernetesstore

import (
	"context"
	"encoding/json"
	"fmt"
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
		in := json.NewDecoder(res.Body)
		in.UseNumber()
		for {
			var event struct {
				Type   string
				Object object
			}
			if in.Decode(&event) != nil || event.Type == "ERROR" { // such as 410 Gone
				return
			}
			if it, ok := pushed(event.Type, event.Object); ok {
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

// pushed returns what an event says, if it is about an object.
func pushed(event string, o object) (it recordstore.Item, ok bool) {
	var err error
	switch event {
	case "ADDED", "MODIFIED":
		it, err = o.item("", 0)
	case "DELETED":
		it.Version = absent
		it.Floor, err = revision(o.at("metadata").text("resourceVersion"))
		it.Order = it.Floor
	default: // a bookmark
		return it, false
	}
	return it, err == nil
}

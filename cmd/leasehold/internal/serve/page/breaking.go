package page

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
	"github.com/leasehold-dev/leasehold/store"
)

// breakWait is how long the answer to a break waits for the end of the lease.
const breakWait = 2 * time.Second

// confirm is what is asked before a lease is broken.
type confirm struct {
	Action, By, Reason string
	Now                bool
	Lease              lease
	Next               string // who is granted the lock after it
	Commands           []command
}

// breakLease answers the form that breaks a lease: it asks back, and breaks it if the form says
// that this was confirmed.
func (p *Page) breakLease(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseForm(); err != nil {
		p.fail(w, r, http.StatusBadRequest, "The form cannot be read: "+excerpt.Of(err.Error()))
		return
	}
	q, form := r.URL.Query(), r.PostForm
	client := rights.Of(r.Context())
	token, err := strconv.ParseUint(q.Get("token"), 10, 64)
	if err != nil || token == 0 {
		p.fail(w, r, http.StatusBadRequest, "The form has no token of a lease.")
		return
	}
	by := cmp.Or(client.Name, form.Get("by"), "somebody at "+r.RemoteAddr)
	req := leasehold.BreakRequest{Name: q.Get("name"), Token: leasehold.Token(token), Owner: q.Get("owner"), By: by, Reason: form.Get("reason"), Now: form.Get("now") != ""}
	if !client.May(rights.Look, req.Name) || !client.May(rights.Break, req.Name) {
		p.Log.Warn("refused a right", "audit", true, "right", "break", "lock", excerpt.Of(req.Name), "client", client.Name, "address", r.RemoteAddr)
		p.fail(w, r, http.StatusForbidden, "This client may not break leases of this lock.")
		return
	}
	v, d := p.oneView(r, req.Name)
	refuse := func(status int, why string) {
		d.Failed = why
		p.write(w, status, v)
	}
	switch {
	case d.Failed != "":
		p.write(w, d.status, v)
		return
	case d.Breaks != "":
		refuse(http.StatusConflict, d.Breaks)
		return
	case req.Reason == "":
		refuse(http.StatusBadRequest, "Give a reason: the holder will ask.")
		return
	case len(req.Reason) > store.MaxNote || len(req.By) > store.MaxNote:
		refuse(http.StatusBadRequest, "The reason, and who breaks the lease, can have 1024 bytes each.")
		return
	}
	if form.Get("confirm") == "" {
		p.askBack(w, r, v, d, req)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), breakWait)
	defer cancel()
	err = p.Client.Operator().Break(ctx, req)
	waits := errors.Is(err, leasehold.ErrBusy) && errors.Is(err, context.DeadlineExceeded)
	p.Log.Info("a lease was to be broken on the page", "audit", true, "lock", excerpt.Of(req.Name), "token", req.Token, "by", excerpt.Of(by), "reason", excerpt.Of(req.Reason), "now", req.Now, "client", client.Name, "address", r.RemoteAddr, "err", err)
	did := "over"
	switch {
	case waits:
		did = "broken"
	case errors.Is(err, leasehold.ErrNotHeld), errors.Is(err, leasehold.ErrBusy):
		refuse(http.StatusConflict, "Nothing was broken: "+excerpt.Of(err.Error()))
		return
	case errors.Is(err, leasehold.ErrInvalid), errors.Is(err, leasehold.ErrUnsupported):
		refuse(http.StatusBadRequest, "Nothing was broken: "+excerpt.Of(err.Error()))
		return
	case err != nil:
		refuse(http.StatusBadGateway, "The lease may be broken or not, and trying again is safe: "+excerpt.Of(err.Error()))
		return
	case req.Now:
		did = "freed"
	}
	w.Header().Set("Location", link(req.Name)+"&"+url.Values{"did": {did}}.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// askBack shows what breaking the lease means, and asks for it again.
func (p *Page) askBack(w http.ResponseWriter, r *http.Request, v *view, d *one, req leasehold.BreakRequest) {
	token := strconv.FormatUint(uint64(req.Token), 10)
	c := &confirm{By: req.By, Reason: req.Reason, Now: req.Now}
	for _, l := range d.Leases {
		if l.Token == token && (req.Owner == "" || l.Owner == req.Owner) {
			c.Lease, c.Action = l.lease, l.BreakURL
		}
	}
	if c.Action == "" {
		d.Failed = "Nothing was broken: no lease of this lock has token " + token + " any more."
		p.write(w, http.StatusConflict, v)
		return
	}
	if len(d.Waiters) > 0 {
		c.Next = d.Waiters[0].Who
	}
	c.Commands = breakCommands(baseURL(r, p.Prefix), req.Name, req.Owner, req.Token, req.Reason, req.Now)
	v.At, d.Confirm = "confirm", c
	p.write(w, http.StatusOK, v)
}

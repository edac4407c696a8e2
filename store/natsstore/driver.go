package natsstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// keepIdle is how long the message of a lock that nobody uses is kept.
const keepIdle = time.Hour

// driver keeps records in a stream with one message for each subject.
type driver struct {
	o        Options
	conn     *nats.Conn
	js       jetstream.JetStream
	stream   jetstream.Stream
	replicas int
	prefix   string // of the subjects
	pulse    pulse
}

var (
	_ recordstore.Watcher = (*driver)(nil)
	_ recordstore.Dater   = (*driver)(nil)
	_ recordstore.Bounded = (*driver)(nil)
)

// Describe implements recordstore.Driver.
func (d *driver) Describe() store.Caps {
	c := store.Caps{Engine: "nats", Reach: "network", Clock: "each client's own, from when it sees a lease"}
	switch {
	case d.o.Synced && d.replicas >= 3:
		c.Class = store.Consensus
	case d.o.Synced:
		c.Class = store.CrashSafe
	}
	return c
}

// MaxLen implements recordstore.Bounded. The subject and the header of a message count as well.
func (d *driver) MaxLen() int { return int(d.conn.MaxPayload()) - 1024 }

// request makes one request. It bounds it, since a cluster that elects a leader may drop it, and
// ends it when the connection is lost. It is then made again.
func (d *driver) request(caller context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(caller, d.o.Timeout/4)
	defer cancel()
	up := d.pulse.connected()
	defer context.AfterFunc(up, cancel)()
	err := do(ctx)
	switch {
	case caller.Err() != nil:
	case errors.Is(err, context.Canceled) && up.Err() != nil:
		err = nats.ErrDisconnected
	case d.pulse.heard(err, d.o.Timeout/2):
		_ = d.conn.ForceReconnect() // fails only if the connection was closed
	}
	return err
}

// Read implements recordstore.Driver. The leader of the stream answers, not a replica.
func (d *driver) Read(ctx context.Context, key string) (recordstore.Item, error) {
	var m *jetstream.RawStreamMsg
	err := d.request(ctx, func(ctx context.Context) (err error) {
		m, err = d.stream.GetLastMsgForSubject(ctx, d.prefix+key)
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		info, err := d.info(ctx)
		if err != nil {
			return recordstore.Item{}, explain(err)
		}
		return recordstore.Item{Version: "0", Floor: info.State.LastSeq}, nil
	case err != nil:
		return recordstore.Item{}, explain(err)
	}
	return recordstore.Item{Value: m.Data, Version: strconv.FormatUint(m.Sequence, 10), Written: d.allow(m.Time)}, nil
}

// allow returns the date of a message, for clocks that differ.
func (d *driver) allow(written time.Time) time.Time { return written.Add(d.o.Skew) }

// info returns what the leader of the stream says of it.
func (d *driver) info(ctx context.Context) (info *jetstream.StreamInfo, err error) {
	err = d.request(ctx, func(ctx context.Context) error {
		info, err = d.stream.Info(ctx)
		return err
	})
	return info, err
}

// Now implements recordstore.Dater.
func (d *driver) Now(ctx context.Context) (time.Time, error) {
	info, err := d.info(ctx)
	if err != nil {
		return time.Time{}, explain(err)
	}
	return info.TimeStamp, nil
}

// Write implements recordstore.Driver.
func (d *driver) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	seq, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return "", recordstore.Refusal("version %q", version)
	}
	o := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(seq), jetstream.WithRetryAttempts(0)}
	if idle {
		o = append(o, jetstream.WithMsgTTL(keepIdle))
	}
	var ack *jetstream.PubAck
	if err := d.request(ctx, func(ctx context.Context) (err error) {
		ack, err = d.js.PublishMsg(ctx, &nats.Msg{Subject: d.prefix + key, Data: value}, o...)
		return err
	}); err != nil {
		return "", explain(err)
	}
	return strconv.FormatUint(ack.Sequence, 10), nil
}

// explain returns err as recordstore understands it.
func explain(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return fmt.Errorf("%w: %w", recordstore.ErrConflict, err)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamNotFound):
		return recordstore.Refusal("%w", err)
	}
	return err
}

// item returns a message as an item, without the time of the server.
func (d *driver) item(m jetstream.Msg) (it recordstore.Item, left uint64, err error) {
	meta, err := m.Metadata()
	if err != nil {
		return it, 0, err
	}
	return recordstore.Item{Value: m.Data(), Version: strconv.FormatUint(meta.Sequence.Stream, 10), Written: d.allow(meta.Timestamp)}, meta.NumPending, nil
}

// Watch implements recordstore.Watcher.
func (d *driver) Watch(ctx context.Context, key string) (<-chan recordstore.Item, error) {
	cons, err := d.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{d.prefix + key}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy})
	if err != nil {
		return nil, explain(err)
	}
	msgs, err := cons.Messages()
	if err != nil {
		return nil, explain(err)
	}
	stop := context.AfterFunc(ctx, msgs.Stop)
	ch := make(chan recordstore.Item, 16)
	go func() {
		defer close(ch)
		defer stop()
		defer msgs.Stop()
		for {
			m, err := msgs.Next()
			if err != nil {
				return
			}
			if it, _, err := d.item(m); err == nil {
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

// List implements recordstore.Driver.
func (d *driver) List(ctx context.Context, each func(string, recordstore.Item) error) error {
	info, err := d.info(ctx)
	if err != nil || info.State.Msgs == 0 {
		return err
	}
	cons, err := d.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy})
	if err != nil {
		return explain(err)
	}
	msgs, err := cons.Messages()
	if err != nil {
		return explain(err)
	}
	defer msgs.Stop()
	defer context.AfterFunc(ctx, msgs.Stop)()
	for {
		m, err := msgs.Next()
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		it, left, err := d.item(m)
		if err != nil {
			return err
		}
		it.Now = info.TimeStamp
		if err := each(strings.TrimPrefix(m.Subject(), d.prefix), it); err != nil || left == 0 {
			return err
		}
	}
}

// Close implements recordstore.Driver.
func (d *driver) Close() error {
	d.conn.Close()
	return nil
}

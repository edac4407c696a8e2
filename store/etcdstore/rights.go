package etcdstore

// Use is what a user of etcd does with locks. Every user may look at them.
type Use struct {
	// Names is what the names of the locks begin with.
	Names string
	// Lock is set if the user takes locks, and Examine if it calls Examine.
	Lock, Examine bool
}

// Right is an etcd permission.
type Right struct {
	// Key is a key, or what keys begin with if Prefix is set.
	Key    string
	Prefix bool
	// Write is set if the keys are also written, and not only read.
	Write bool
}

// Rights returns the least rights for the use of the store that a URL and options name, as for
// Open. The error matches store.ErrInvalid.
func (u Use) Rights(url string, o *Options) ([]Right, error) {
	_, c, err := parseURL(url, o)
	if err != nil {
		return nil, err
	}
	l := layout{c.Prefix}
	rights := []Right{{Key: l.locks(u.Names), Prefix: true, Write: u.Lock}}
	if u.Examine && !(u.Lock && u.Names == "") {
		rights = append(rights, Right{Key: l.locks(examined), Prefix: true, Write: true})
	}
	if u.Names == "" { // the keys below also begin so
		return rights, nil
	}
	for _, keys := range []string{l.allSlots(), l.broken()} {
		rights = append(rights, Right{Key: keys + escape(u.Names), Prefix: true, Write: u.Lock})
	}
	if u.Examine { // a request for a lock looks for what refuses it
		rights = append(rights, Right{Key: l.broken() + examined, Prefix: true})
	}
	if u.Lock {
		rights = append(rights, Right{Key: l.inboxes(), Prefix: true, Write: true})
	}
	return append(rights, Right{Key: l.floor(), Write: u.Lock && c.Floor != 0}, Right{Key: l.longest(), Write: u.Lock}), nil
}

package audit

import auditapi "k8s.io/apiserver/pkg/apis/audit"

// awaited lists the records of reads with an unwritten RequestReceived event. A read usually ends soon, and then its
// events are encoded together, at little more than the cost of one. Otherwise writeLate writes the first one.
type awaited struct {
	first *Record // linked by Record.list
}

// listed are the neighbours of a Record in a list.
type listed struct {
	before, after *Record
	in            bool
}

// await implements recorder.
func (b *logBackend) await(r *Record) bool {
	if !b.lenient || b.legacy {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.awaited.add(r)
	b.timeLocked()
	return true
}

// awaitNoMore implements recorder.
func (b *logBackend) awaitNoMore(r *Record) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	in := r.list.in
	b.awaited.remove(r)
	return in
}

// writeAwaited writes all awaited events.
func (b *logBackend) writeAwaited() {
	for {
		b.mu.Lock()
		r := b.awaited.first
		if r != nil {
			b.awaited.remove(r)
		}
		b.mu.Unlock()
		if r == nil {
			return
		}
		r.writeReceived() // takes the record's lock, under which stages take b.mu
	}
}

func (a *awaited) add(r *Record) {
	r.list = listed{after: a.first, in: true}
	if a.first != nil {
		a.first.list.before = r
	}
	a.first = r
}

// remove removes a record, if present.
func (a *awaited) remove(r *Record) {
	if !r.list.in {
		return
	}
	before, after := r.list.before, r.list.after
	if before == nil {
		a.first = after
	} else {
		before.list.after = after
	}
	if after != nil {
		after.list.before = before
	}
	r.list = listed{}
}

// mayAwait reports whether the event RequestReceived may be written together with the next one. That requires a read
// that is flushed before its response, and an event without parts that may change later.
func (r *Record) mayAwait() bool {
	return r.flushed && reads(r.event.Verb) && len(r.omit) == 0 && len(r.annotations) == 0 &&
		len(r.library.annotations()) == 0
}

// writeReceived writes the event RequestReceived now, if it has not been written.
func (r *Record) writeReceived() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.awaited {
		return
	}
	r.awaited = false
	e := r.event
	e.Stage, e.StageTimestamp = auditapi.StageRequestReceived, e.RequestReceivedTimestamp
	e.ImpersonatedUser, e.AuthenticationMetadata, e.ResponseStatus = nil, nil, nil
	e.RequestObject, e.ResponseObject, e.Annotations = nil, nil, nil
	r.auditor.log.record(&e, beside{user: r.user, flushed: true})
}

package audit

import auditapi "k8s.io/apiserver/pkg/apis/audit"

// deferredRecords lists the records of reads with an unwritten RequestReceived event. A read usually ends soon, and
// then its events are encoded together, at little more than the cost of one. Otherwise writeLate writes the first one.
type deferredRecords struct {
	first *Record // linked by Record.list
}

// links are the neighbours of a Record in a list.
type links struct {
	before, after *Record
	in            bool
}

// hold implements recorder.
func (b *logBackend) hold(r *Record) bool {
	if !b.lenient || b.legacy {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deferred.add(r)
	b.timeLocked()
	return true
}

// dropDeferred implements recorder.
func (b *logBackend) dropDeferred(r *Record) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	in := r.list.in
	b.deferred.remove(r)
	return in
}

// writeDeferred writes all deferred events.
func (b *logBackend) writeDeferred() {
	for {
		b.mu.Lock()
		r := b.deferred.first
		if r != nil {
			b.deferred.remove(r)
		}
		b.mu.Unlock()
		if r == nil {
			return
		}
		r.writeReceived() // takes the record's lock, under which stages take b.mu
	}
}

func (a *deferredRecords) add(r *Record) {
	r.list = links{after: a.first, in: true}
	if a.first != nil {
		a.first.list.before = r
	}
	a.first = r
}

// remove removes a record, if present.
func (a *deferredRecords) remove(r *Record) {
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
	r.list = links{}
}

// mayHold reports whether the event RequestReceived may be written together with the next one. That requires a read
// that is flushed before its response, and an event without parts that may change later.
func (r *Record) mayHold() bool {
	return r.flushed && reads(r.event.Verb) && len(r.omit) == 0 && len(r.annotations) == 0 &&
		len(r.library.annotations()) == 0
}

// writeReceived writes the event RequestReceived now, if it has not been written.
func (r *Record) writeReceived() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.deferred {
		return
	}
	r.deferred = false
	e := r.event
	e.Stage, e.StageTimestamp = auditapi.StageRequestReceived, e.RequestReceivedTimestamp
	e.ImpersonatedUser, e.AuthenticationMetadata, e.ResponseStatus = nil, nil, nil
	e.RequestObject, e.ResponseObject, e.Annotations = nil, nil, nil
	r.auditor.log.record(&e, extras{user: r.user, flushed: true})
}

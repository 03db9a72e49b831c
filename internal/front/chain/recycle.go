package chain

// recycle returns the exchange and its Record to the pool, if no reference to it can remain. Most requests read one
// object in a few microseconds; without the pool each would leave 2.5 KB of garbage.
//
// A handler declares that it leaves no references (request.Scope.Over), because it may have passed the request's
// context to work that outlives the response. So may earlier steps, for example an authorizer that calls another
// server. Code that waits with a context calls Done, so an exchange whose Done was called is not recycled. Nor are
// exchanges that ended abnormally, and exchanges of writes, whose seats may stay in use for a while (flow.Ticket).
func (x *exchange) recycle() {
	if !x.scope.Over || x.info.Mutating() || x.ctx == nil || x.memory.timed.Pending() || x.code == 0 || x.conn != nil ||
		x.stopRead != nil || x.chain.config.Tracer != nil {
		return
	}
	record := x.memory.record
	if record != nil && !record.Clear() {
		record = nil
	}
	c := x.chain
	*x = exchange{memory: memory{record: record}}
	c.exchanges.Put(x)
}

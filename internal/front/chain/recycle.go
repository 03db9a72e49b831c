package chain

// newExchange returns an exchange, perhaps one that another request is done with.
func (c *Chain) newExchange() *exchange {
	if x, ok := c.exchanges.Get().(*exchange); ok {
		return x
	}
	return new(exchange)
}

// recycle lets another request have the exchange, with its Record, if nothing can know it any more. Most requests are
// reads of one object, some microseconds of work, for which the collector would have 2.5 KB to clear away.
//
// Handlers say that of themselves (request.Scope.Over), because they may give the request's context to what goes on
// after the answer. So may earlier steps, for example an authorizer that asks another server. Code that waits with a
// context calls its Done, and an exchange whose context was asked that is left to the collector. So is each that did
// not end as usual, and that of a write, whose seats may be in use for a while (flow.Ticket).
func (x *exchange) recycle() {
	if !x.scope.Over || x.info.Mutating() || x.ctx == nil || x.timed.Awaited() || x.code == 0 || x.conn != nil ||
		x.stopRead != nil || x.chain.config.Tracer != nil {
		return
	}
	memory := x.memory
	if memory != nil && !memory.Clear() {
		memory = nil
	}
	c := x.chain
	*x = exchange{memory: memory}
	c.exchanges.Put(x)
}

package chain

// charge opens the account of the memory that a request takes, which its handler charges (request.ChargeBody). It is
// closed when the handler has returned.
func (c *Chain) charge(x *exchange, next func(*exchange)) {
	if c.config.Memory == nil {
		next(x)
		return
	}
	x.account.Open(c.config.Memory, x.user)
	x.scope.Memory = &x.account
	defer x.account.Close()
	next(x)
}

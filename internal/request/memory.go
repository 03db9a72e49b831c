package request

import "context"

// Memory is the account of the memory that a request takes.
type Memory interface {
	// Body charges for a document of a size that the client has sent, and Hold for other memory. weight is the estimate
	// in bytes. The error is an answer.
	Body(size int, weight int64) error
	Hold(weight int64) error
}

// ChargeBody charges the request that ctx belongs to for a document that its client has sent, before it is decoded.
// Outside of a request it does nothing.
func ChargeBody(ctx context.Context, size int, weight int64) error {
	if s := ScopeOf(ctx); s != nil && s.Memory != nil {
		return s.Memory.Body(size, weight)
	}
	return nil
}

// Hold charges the request that ctx belongs to for memory that it is about to take: weight is the estimate in bytes.
// Outside of a request it does nothing.
func Hold(ctx context.Context, weight int64) error {
	if s := ScopeOf(ctx); s != nil && s.Memory != nil {
		return s.Memory.Hold(weight)
	}
	return nil
}

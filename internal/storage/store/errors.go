package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Conditions that callers test with errors.Is.
var (
	ErrExists   = errors.New("key exists already")
	ErrNotFound = errors.New("key not found")
	ErrConflict = errors.New("key was changed meanwhile")
	// ErrFenced: the key's container is being deleted (Options.UnlessFenced).
	ErrFenced = errors.New("the owner of the key is being deleted")
	// ErrOvertaken: another write of the same sequence came before (Options.Sequence); read again and retry.
	ErrOvertaken = errors.New("another write came before that must be seen first")
	// ErrHeld: the barrier of the write was closed (Options.Behind), or the hold that it requires is gone
	// (Options.Passes).
	ErrHeld = errors.New("writes of its kind are held")
	// ErrTaken: a key of Options.Also does not have the required revision.
	ErrTaken     = errors.New("a key that must be written with it was changed meanwhile")
	ErrCompacted = errors.New("the requested revision has been compacted")
	// ErrFuture: the requested revision has not been reached yet.
	ErrFuture = errors.New("the requested revision is in the future")
	// ErrUncertain: the write may or may not have been committed; read the key to find out.
	ErrUncertain = errors.New("the outcome of the write is unknown")
	// ErrTooLarge: the transaction is larger than etcd's limit, by default 1.5 MiB.
	ErrTooLarge = errors.New("the value is larger than the store accepts")
	// ErrNoSpace: the store's quota is used up; only deletes and compaction work until space is freed.
	ErrNoSpace = errors.New("the store is full")
	// ErrInUse: another process has the data directory open.
	ErrInUse = errors.New("in use by another process")
	// ErrGaveUp: the embedded etcd has ended by itself, and the process is about to end with the reason.
	ErrGaveUp = errors.New("has given up")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("the store is closed")
	// ErrNoDatabase: the backend has no database, and so no snapshots.
	ErrNoDatabase = errors.New("the store has no database")
	// ErrLeaseLost: etcd has lost the lease for a key; nothing was written. The store then requests another lease.
	ErrLeaseLost = errors.New("etcd has lost a lease")
)

// ReadError translates the error of a read by etcd's client.
func ReadError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrCompacted):
		return ErrCompacted
	case errors.Is(err, rpctypes.ErrFutureRev):
		return ErrFuture
	}
	return fmt.Errorf("etcd: %w", err)
}

// WriteError translates the error of a transaction by etcd's client. Every error that does not prove a refusal before
// the log is uncertain: if a write was falsely reported as failed, the caller would repeat it.
func WriteError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrRequestTooLarge),
		status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max"):
		// gRPC's own limit
		return ErrTooLarge
	case errors.Is(err, rpctypes.ErrNoSpace):
		return ErrNoSpace
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return ErrLeaseLost
	case errors.Is(err, rpctypes.ErrTooManyRequests), errors.Is(err, rpctypes.ErrPermissionDenied),
		errors.Is(err, rpctypes.ErrInvalidAuthToken), errors.Is(err, rpctypes.ErrUserEmpty),
		errors.Is(err, rpctypes.ErrAuthFailed):
		return fmt.Errorf("etcd: %w", err)
	}
	return fmt.Errorf("%w: etcd: %w", ErrUncertain, err)
}

// Ended reports whether err only means that ctx has ended.
func Ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err()))
}

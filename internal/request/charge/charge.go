// Package charge charges requests for memory before they use it.
//
// A body of three megabytes may hold a million empty elements, and each of them becomes a map, a Go struct, and an
// entry of managedFields. JSON, YAML, CBOR and Protobuf estimate the memory of a document from its bytes: its weight.
// A Ledger keeps one bound on the weights of all requests under way, and each request has an Account with it.
// docs/design/memory-charge.md has the reasons and the figures.
//
// A weight is an estimate of the memory that a write of the document takes, from the body to the store. The functions
// accept any bytes. A Ledger is safe for concurrent use; an Account belongs to the goroutine of its request.
package charge

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	// free is the weight, in bytes, that no account is charged for: that of an ordinary object.
	free = 256 << 10
	// most is the weight of the elements of one document, in bytes. perByte for each of its bytes comes on top.
	most = 64 << 20
)

// Account has the bytes charged to one request. The zero value has none.
type Account struct {
	ledger *Ledger
	who    user.Info
	weight int64 // asked for
	held   int64 // of it, in the ledger
}

// Body charges for a document that the client has sent. The error is a 413 for one that no server takes, and a 429 if
// the ledger has no room.
func (a *Account) Body(size int, weight int64) error {
	if a.ledger == nil || a.weight+weight <= free {
		a.weight += weight
		return nil
	}
	if elements := weight - perByte*int64(size); elements > most {
		a.ledger.refused(tooMany)
		return tooLarge(size, elements)
	}
	return a.Hold(weight)
}

// Hold charges for the memory of a stored object, an amount that the client does not choose. The error is a 429.
func (a *Account) Hold(weight int64) error {
	a.weight += weight
	if a.ledger == nil || a.weight <= free {
		return nil
	}
	n := a.weight - a.held
	if !a.ledger.take(a.who, n) {
		a.weight -= weight
		a.ledger.refused(noRoom)
		return apierrors.NewTooManyRequests(fmt.Sprintf("this request may take %s of memory, and the requests under way "+
			"leave too little of the %s that they may take together; please try again later", megabytes(n),
			megabytes(a.ledger.bound)), retryAfter)
	}
	a.held = a.weight
	return nil
}

// Close gives back everything.
func (a *Account) Close() {
	if a.held > 0 {
		a.ledger.give(a.who, a.held)
		a.held = 0
	}
}

// tooLarge is the answer to a document of too many elements.
func tooLarge(size int, elements int64) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge,
		Reason: metav1.StatusReasonRequestEntityTooLarge,
		Message: fmt.Sprintf("Request entity too large: the elements of its %d bytes would take %s of memory, the limit is "+
			"%s: send fewer elements, or several objects", size, megabytes(elements), megabytes(most)),
	}}
}

func megabytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

// reserved reports whether a user may use the reserve: administrators, nodes and the components of the cluster.
func reserved(who user.Info) bool {
	name := who.GetName()
	rest, system := strings.CutPrefix(name, "system:")
	account, isAccount := strings.CutPrefix(rest, "serviceaccount:")
	switch {
	case slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup):
		return true
	case !system || name == user.Anonymous:
		return false
	}
	return !isAccount || strings.HasPrefix(account, "kube-system:")
}

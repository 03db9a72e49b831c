// Package charge charges requests for memory before they use it.
//
// A body of three megabytes may hold a million empty elements, and each of them becomes a map, a Go struct, and an
// entry of managedFields. JSON, YAML, CBOR and Protobuf estimate the memory of a document from its bytes: its weight.
// A Ledger keeps one bound on the weights of all requests under way, and each request has an Account with it.
// docs/design/memory-charge.md has the reasons and the figures.
//
// A weight is an estimate of the memory that a write of the document takes, from the body to the store. The functions
// accept any bytes. A Ledger and an Account are safe for concurrent use.
package charge

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

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

// Account has the bytes charged to one request. The zero value charges nothing. It must not be copied after Open.
type Account struct {
	ledger *Ledger
	user   user.Info

	mu     sync.Mutex // guards the following; a list is converted in several goroutines
	weight int64      // requested
	held   int64      // the part of weight that is in the ledger
}

// Open begins the account of a user's request in a ledger. With a nil Ledger the account charges nothing.
func (a *Account) Open(l *Ledger, u user.Info) { a.ledger, a.user, a.weight, a.held = l, u, 0, 0 }

// Body charges for a document that the client has sent. The error is a 413 for one that no server takes, and a 429 if
// the ledger has no room.
func (a *Account) Body(size int, weight int64) error {
	if a.ledger == nil || weight <= free {
		return a.Hold(weight)
	}
	if elements := weight - perByte*int64(size); elements > most {
		a.ledger.refused(tooMany)
		return tooLarge(size, elements)
	}
	return a.Hold(weight)
}

// Hold charges for the memory of a stored object, an amount that the client does not choose. The error is a 429.
func (a *Account) Hold(weight int64) error {
	if a.ledger == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.weight += weight
	if a.weight <= free {
		return nil
	}
	n := a.weight - a.held
	if !a.ledger.take(a.user, n) {
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
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held > 0 {
		a.ledger.give(a.user, a.held)
		a.held = 0
	}
}

// replyFactor is the largest weight of a webhook's reply in relation to its request: converted objects have about as
// many elements as their originals.
const replyFactor = 4

// Reply returns an error if decoding the reply to a webhook's request would take much more memory than the request's
// objects.
func Reply(sent, reply []byte) error {
	if weight, limit := JSON(reply), most+replyFactor*JSON(sent); weight > limit {
		return fmt.Errorf("the elements of its response of %d bytes would take %s of memory, the limit for this request is %s",
			len(reply), megabytes(weight), megabytes(limit))
	}
	return nil
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
func reserved(u user.Info) bool {
	name := u.GetName()
	rest, system := strings.CutPrefix(name, "system:")
	account, isAccount := strings.CutPrefix(rest, "serviceaccount:")
	switch {
	case slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup):
		return true
	case !system || name == user.Anonymous:
		return false
	}
	return !isAccount || strings.HasPrefix(account, "kube-system:")
}

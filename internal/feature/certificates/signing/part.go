// Package signing has the controllers of CertificateSigningRequests: one approves those of kubelets, one issues
// certificates for Kubernetes' own signers with the server's authority, and one removes requests that are done with
// (k8s.io/kubernetes/pkg/controller/certificates).
//
// They stand behind the verbs, as any client would: the admission plugins about certificates are asked about them too.
// What they decide by (policy.go) is pure.
package signing

import (
	"encoding/json"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

var requests = ref.CertificateSigningRequests.GroupResource()

// manager is the field manager of what the controllers write.
const manager = "kube-controller-manager"

// Settings say with what is signed.
type Settings struct {
	// Authorities are those of signers, by their names. Without any, the server's own authority signs for all of
	// Kubernetes' signers; with some, signers that are not here are left to others.
	Authorities map[string]pki.Authority
	// Duration is how long certificates last at most, a year if zero.
	Duration time.Duration
}

// Part brings the controllers.
func Part(settings Settings) part.Part {
	return part.Part{Name: "certificate signing", Loops: []part.Loop{
		{
			Name: "certificatesigningrequest-approving-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler { return &approver{h} },
		},
		{
			Name: "certificatesigningrequest-signing-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler { return &signer{h, settings} },
		},
		{
			Name: "certificatesigningrequest-cleaner-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler { return &cleaner{Host: h} },
		},
	}}
}

// read returns the request of a name in the view, nil if there is none or it cannot be read.
func read(h *part.Host, name string) *certificatesv1.CertificateSigningRequest {
	e := h.View.Collection(ref.CertificateSigningRequests.Prefix).Snapshot().Get("", name)
	if e == nil || e.Deleting {
		return nil
	}
	var r certificatesv1.CertificateSigningRequest
	if json.Unmarshal(e.JSON(), &r) != nil {
		return nil
	}
	return &r
}

// observe names the requests that have changed.
func observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() == ref.CertificateSigningRequests.Prefix && ev.Type != watchcache.Deleted {
		need(ev.Entry.Name)
	}
}

// has reports whether a request has a condition of one of the types, whatever its status: these are never false, but
// for Failed, which no one may set to anything but True either.
func has(r *certificatesv1.CertificateSigningRequest, types ...certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return slices.Contains(types, c.Type)
	})
}

// addCondition appends a condition to the status of a request, as JSON. The verbs fill in the times.
func addCondition(status object.Object, kind certificatesv1.RequestConditionType, reason, message string) {
	list, _ := status["conditions"].([]any)
	status["conditions"] = append(slices.Clip(list), object.Object{
		"type": string(kind), "status": "True", "reason": reason, "message": message,
	})
}

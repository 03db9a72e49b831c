// Package signing implements the controllers of the group certificates.k8s.io
// (k8s.io/kubernetes/pkg/controller/certificates). Of CertificateSigningRequests, one approves the requests of
// kubelets, one issues certificates for Kubernetes' own signers with the server's authority, and one removes finished
// requests. One removes old PodCertificateRequests, and one publishes the server's root certificates as a
// ClusterTrustBundle.
//
// They write through the verbs, as any client, so the admission plugins for certificates apply to them too. Their
// policy (policy.go) is pure.
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

// manager is the field manager of the controllers.
const manager = "kube-controller-manager"

// Settings configure the signing authorities.
type Settings struct {
	// Authorities are the authorities of signers, by name. If empty, the server's own authority signs for all of
	// Kubernetes' signers; otherwise missing signers are left to other controllers.
	Authorities map[string]pki.Authority
	// Duration is the longest duration of certificates.
	Duration time.Duration
	// PodCertificates and TrustBundles report whether the feature gates of these names are open.
	PodCertificates, TrustBundles bool
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
		{
			Name: "podcertificaterequest-cleaner-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler {
				if !settings.PodCertificates {
					return nil
				}
				return &podCleaner{h}
			},
		},
		{
			Name: "kube-apiserver-serving-clustertrustbundle-publisher-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler {
				if !settings.TrustBundles || !served(h) {
					return nil
				}
				return &publisher{Host: h}
			},
		},
	}}
}

// read returns the request of a name in the view, or nil if it is missing or unreadable.
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

// has reports whether a request has a condition of one of the types, whatever its status. The status of these
// conditions is always True; validation ensures it for Failed too.
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

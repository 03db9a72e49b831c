package signing

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

const (
	// servingSigner is the signer of the certificates that API servers present.
	servingSigner = "kubernetes.io/kube-apiserver-serving"
	// publisherAccount is the name of the controller's service account.
	publisherAccount = "kube-apiserver-serving-clustertrustbundle-publisher"
	// TrustBundles is the feature gate of ClusterTrustBundles.
	TrustBundles = "ClusterTrustBundle"
)

var bundles = ref.ClusterTrustBundles.GroupResource()

// served reports whether the server serves a version of ClusterTrustBundles.
func served(h *part.Host) bool {
	r := h.Catalog.Snapshot().Resource(bundles.Group, bundles.Resource)
	return r != nil && r.Served && slices.ContainsFunc(r.Versions, func(v *catalog.Version) bool { return v.Served })
}

// publisher keeps one bundle of the signer, with the server's root certificates, and deletes all others (KEP-3257). Its
// only key is "".
type publisher struct {
	*part.Host
	need func(string)
}

// Requests implements control.Requester.
func (p *publisher) Requests(need func(string)) { p.need = need }

// Run requests the bundle at the start of a term, and when the certificates of the server change.
func (p *publisher) Run(ctx context.Context) {
	for {
		changed := p.Certificates.Changed()
		p.need("")
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (p *publisher) Observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() == ref.ClusterTrustBundles.Prefix && bundleSpec(ev.Entry).SignerName == servingSigner {
		need("")
	}
}

func (p *publisher) Reconcile(ctx context.Context, _ string) error {
	if err := p.View.FreshOwn(ctx); err != nil {
		return err
	}
	certificates := string(p.Certificates.ServerCA())
	name := bundleName(certificates)
	if err := p.publish(ctx, name, certificates); apierrors.IsInvalid(err) {
		// Clients may trust a serving certificate that is no authority. It cannot be in a bundle.
		p.Log.Warn("the server's root certificates cannot be published as a ClusterTrustBundle", "error", err)
		return nil
	} else if err != nil {
		return err
	}
	var old []string
	p.View.Collection(ref.ClusterTrustBundles.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if e.Name != name && !e.Deleting && bundleSpec(e).SignerName == servingSigner {
			old = append(old, e.Name)
		}
		return true
	})
	var failed []error
	for _, name := range old {
		failed = append(failed, p.remove(ctx, name))
	}
	return errors.Join(failed...)
}

// publish creates the bundle, or restores its certificates.
func (p *publisher) publish(ctx context.Context, name, certificates string) error {
	e := p.View.Collection(ref.ClusterTrustBundles.Prefix).Snapshot().Get("", name)
	if e != nil && bundleSpec(e).TrustBundle == certificates {
		return nil
	}
	if e == nil {
		call, err := p.call("")
		if err != nil {
			return err
		}
		obj, err := p.Verbs.New(call, object.Object{
			"metadata": object.Object{"name": name},
			"spec":     object.Object{"signerName": servingSigner, "trustBundle": certificates},
		})
		if err != nil {
			return err
		}
		_, err = p.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: manager})
		return control.IgnoreExists(err)
	}
	call, err := p.call(name)
	if err != nil {
		return err
	}
	_, err = p.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			obj["spec"] = object.Object{"signerName": servingSigner, "trustBundle": certificates}
			return obj, nil
		})
	return control.IgnoreNotFound(err) // its deletion requests the bundle again
}

func (p *publisher) remove(ctx context.Context, name string) error {
	call, err := p.call(name)
	if err != nil {
		return err
	}
	_, err = p.Verbs.Delete(ctx, call, metav1.DeleteOptions{})
	return control.IgnoreNotFound(err)
}

func (p *publisher) call(name string) (*verb.Call, error) {
	return p.Verbs.Call(bundles, "", name, control.ControllerUser(publisherAccount))
}

// bundleName returns Kubernetes' name of the bundle: the signer's, and a hash of the certificates.
func bundleName(certificates string) string {
	hash := sha256.Sum256([]byte(certificates))
	return fmt.Sprintf("%s:%x", strings.ReplaceAll(servingSigner, "/", ":"), hash[:12])
}

// bundleSpec returns the spec of a bundle, empty if it cannot be decoded.
func bundleSpec(e *watchcache.Entry) (s certificatesv1.ClusterTrustBundleSpec) {
	var in certificatesv1.ClusterTrustBundle
	if json.Unmarshal(e.JSON(), &in) == nil {
		s = in.Spec
	}
	return s
}

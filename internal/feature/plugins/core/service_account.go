package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// accounts sets the service account of pods, with its token and its image pull secrets, and restricts pods to the
// secrets of the account if it requires that.
type accounts struct {
	view      *watchcache.View
	newSuffix func() string
	patience  time.Duration
}

const (
	// defaultAccount is the service account that every namespace gets shortly after its creation.
	defaultAccount = "default"
	// defaultPatience is how long Kubernetes waits for it: ten times, with pauses of 100 to 200 ms.
	defaultPatience = 1500 * time.Millisecond
	// enforceMountable is the annotation of accounts that restrict their pods to the account's own secrets.
	enforceMountable = "kubernetes.io/enforce-mountable-secrets"
)

// ServiceAccount sets the service account of pods and mounts its token. It rejects pods with a missing account.
func ServiceAccount(c plugin.Config) []plugin.Rule {
	s := &accounts{c.View, c.NewSuffix, c.AccountPatience}
	if s.patience == 0 {
		s.patience = defaultPatience
	}
	return []plugin.Rule{
		{Plural: "pods", Operations: plugin.Creates, Mutate: s.set, Validate: s.check},
		{Plural: "pods", Subresource: "ephemeralcontainers", Operations: plugin.Updates, Validate: s.checkEphemeral},
	}
}

// isMirror reports whether a pod is the mirror of a static pod. Nothing is added to it: its node would consider it
// changed.
func isMirror(pod object) bool {
	_, ok := catalog.At(pod, "metadata", "annotations")[corev1.MirrorPodAnnotationKey]
	return ok
}

func (s *accounts) set(ctx context.Context, a *admit.Attributes) error {
	if isMirror(a.Object) {
		return s.check(ctx, a)
	}
	name := catalog.Text(a.Object, "spec", "serviceAccountName")
	named := name != ""
	if !named {
		name = defaultAccount
	}
	account, err := s.find(ctx, a, name)
	if err != nil {
		return err
	}
	spec := a.Edit("spec")
	if !named {
		spec["serviceAccountName"], spec["serviceAccount"] = name, name // serviceAccount is the deprecated alias
	}
	if automounts(account, spec) {
		s.mount(spec)
	}
	if secrets, _ := spec["imagePullSecrets"].([]any); len(secrets) == 0 && len(account.ImagePullSecrets) > 0 {
		for _, secret := range account.ImagePullSecrets {
			secrets = append(secrets, object{"name": secret.Name})
		}
		spec["imagePullSecrets"] = secrets
	}
	return holdTo(account, a)
}

// find returns an account, or the error for a missing one. A pod that is written right after its namespace waits for
// the default account.
func (s *accounts) find(ctx context.Context, a *admit.Attributes, name string) (*corev1.ServiceAccount, error) {
	account, err := plugin.Lookup[corev1.ServiceAccount](ctx, s.view, ref.ServiceAccounts.Prefix, a.Namespace, name)
	if account == nil && err == nil && name == defaultAccount {
		account, err = s.await(ctx, a.Namespace)
	}
	if account == nil && err == nil {
		err = apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccount"}, name)
	}
	if err != nil {
		return nil, admit.Forbidden(a, fmt.Errorf("error looking up service account %s/%s: %w", a.Namespace, name, err))
	}
	return account, nil
}

// await waits for the default account of a namespace, which a controller creates. It returns nil after a timeout.
func (s *accounts) await(ctx context.Context, namespace string) (*corev1.ServiceAccount, error) {
	defer request.Wait(ctx)()
	late := time.NewTimer(s.patience)
	defer late.Stop()
	all := s.view.Collection(ref.ServiceAccounts.Prefix)
	for {
		changed := all.Changed()
		if e := all.Snapshot().Get(namespace, defaultAccount); e != nil {
			return plugin.Decode[corev1.ServiceAccount](e)
		}
		select {
		case <-changed:
		case <-late.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// automounts reports whether the token is mounted: by the setting of the pod, else of the account, else true.
func automounts(account *corev1.ServiceAccount, spec object) bool {
	if own, ok := spec["automountServiceAccountToken"].(bool); ok {
		return own
	}
	return account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken
}

const (
	tokenVolumePrefix = "kube-api-access-"
	tokenPath         = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is the lifetime of the token in a pod. The odd value, a little over an hour, identifies clients that
	// do not renew it.
	tokenSeconds = 3607
)

// mount mounts the token at its path in every container that mounts nothing else there.
func (s *accounts) mount(spec object) {
	volumes, _ := spec["volumes"].([]any)
	name := ""
	for _, v := range catalog.Objects(volumes) {
		if strings.HasPrefix(catalog.Text(v, "name"), tokenVolumePrefix) {
			name = catalog.Text(v, "name")
			break
		}
	}
	there := name != ""
	if !there {
		name = tokenVolumePrefix + s.newSuffix()
	}
	mounted := false
	for _, list := range []string{"initContainers", "containers"} {
		if containers, did := mountEach(spec[list], name); did {
			spec[list], mounted = containers, true
		}
	}
	if mounted && !there {
		spec["volumes"] = append(slices.Clip(volumes), object{"name": name, "projected": tokenVolume()})
	}
}

// mountEach returns containers with the volume mounted, and whether that has changed any.
func mountEach(list any, volume string) (out []any, did bool) {
	containers, _ := list.([]any)
	out = slices.Clone(containers)
	for i, c := range out {
		c, _ := c.(object)
		mounts, _ := c["volumeMounts"].([]any)
		taken := slices.ContainsFunc(catalog.Objects(mounts),
			func(m object) bool { return catalog.Text(m, "mountPath") == tokenPath })
		if c == nil || taken {
			continue
		}
		out[i] = plugin.With(c, "volumeMounts",
			append(slices.Clip(mounts), object{"name": volume, "readOnly": true, "mountPath": tokenPath}))
		did = true
	}
	return out, did
}

// tokenVolume returns the volume with the token, the root certificates and the namespace.
func tokenVolume() object {
	return object{
		"defaultMode": int64(corev1.ProjectedVolumeSourceDefaultMode),
		"sources": []any{
			object{"serviceAccountToken": object{"path": "token", "expirationSeconds": int64(tokenSeconds)}},
			object{
				"configMap": object{
					"name": "kube-root-ca.crt", "items": []any{object{"key": "ca.crt", "path": "ca.crt"}},
				},
			},
			object{"downwardAPI": object{"items": []any{
				object{"path": "namespace", "fieldRef": object{"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
			}}},
		},
	}
}

// check validates a new pod against its account, after webhooks may have changed it.
func (s *accounts) check(ctx context.Context, a *admit.Attributes) error {
	if isMirror(a.Object) {
		if err := checkMirror(catalog.At(a.Object, "spec")); err != nil {
			return admit.Forbidden(a, err)
		}
		return nil
	}
	account, err := s.named(ctx, a)
	if err != nil {
		return err
	}
	return holdTo(account, a)
}

// holdTo rejects a pod that references secrets outside its account's list, if the account requires that.
func holdTo(account *corev1.ServiceAccount, a *admit.Attributes) error {
	if !enforces(account) {
		return nil
	}
	if err := checkReferences(account, catalog.At(a.Object, "spec")); err != nil {
		return admit.Forbidden(a, err)
	}
	return nil
}

// named returns the account that a pod names.
func (s *accounts) named(ctx context.Context, a *admit.Attributes) (*corev1.ServiceAccount, error) {
	name := catalog.Text(a.Object, "spec", "serviceAccountName")
	if name == "" {
		return nil,
			admit.Forbidden(a,
				fmt.Errorf("no service account specified for pod %s/%s", a.Namespace,
					catalog.Text(a.Object, "metadata", "name")))
	}
	return s.find(ctx, a, name)
}

// checkMirror rejects references that a mirror pod cannot have, since it has no account.
func checkMirror(spec object) error {
	switch {
	case catalog.Text(spec, "serviceAccountName") != "":
		return errors.New("a mirror pod may not reference service accounts")
	case refersToSecret(spec):
		return errors.New("a mirror pod may not reference secrets")
	}
	for _, v := range catalog.Objects(spec["volumes"]) {
		for _, source := range catalog.Objects(catalog.At(v, "projected")["sources"]) {
			if source["serviceAccountToken"] != nil {
				return errors.New("a mirror pod may not use ServiceAccountToken volume projections")
			}
		}
	}
	return nil
}

func enforces(account *corev1.ServiceAccount) bool {
	on, err := strconv.ParseBool(account.Annotations[enforceMountable])
	return on && err == nil
}

// checkEphemeral validates added ephemeral containers against the account. As in Kubernetes, the error is not a 403.
func (s *accounts) checkEphemeral(ctx context.Context, a *admit.Attributes) error {
	account, err := s.named(ctx, a)
	if err != nil || !enforces(account) {
		return err
	}
	return checkContainers(account, "ephemeral container",
		catalog.Objects(catalog.At(a.Object, "spec")["ephemeralContainers"]))
}

package review

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

const (
	minTokenSeconds = 10 * 60
	maxTokenSeconds = 1 << 32
	// projectedSeconds is the lifetime that kubelets request. Such tokens live for extendedSeconds, so that programs
	// that do not reread them keep working.
	projectedSeconds = 60*60 + 7
	extendedSeconds  = 365 * 24 * 60 * 60
)

var tokenRequest = schema.GroupVersionKind{Group: authenticationv1.GroupName, Version: "v1", Kind: "TokenRequest"}

// issue answers a TokenRequest: a new token for the parent service account.
func (r Reviews) issue(
	ctx context.Context, c *verb.Call, obj object.Object, validateAdmission func(object.Object) error,
) (object.Object, error) {
	req, err := read[authenticationv1.TokenRequest](obj)
	if err != nil {
		return nil, err
	}
	if req.Name != "" && req.Name != c.Name {
		return nil, invalid.New(tokenRequest.GroupKind(), c.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata").Child("name"), req.Name,
				"must match the service account name if specified")})
	}
	if _, err := r.View.Fresh(ctx); err != nil {
		return nil, err
	}
	account, err := r.find(ref.ServiceAccounts, c.Namespace, c.Name)
	if err != nil {
		return nil, err
	}
	if req.UID != "" && string(req.UID) != account.UID {
		return nil, otherUID(c.Name, req.UID, account.UID)
	}
	if len(req.Spec.Audiences) == 0 {
		req.Spec.Audiences = slices.Clone(r.Tokens.Audiences())
	}
	now := r.Now()
	req.Name, req.Namespace, req.UID = c.Name, c.Namespace, types.UID(account.UID)
	req.CreationTimestamp = metav1.NewTime(now.UTC())
	if errs := checkTokenRequest(req); len(errs) > 0 {
		return nil, invalid.New(tokenRequest.GroupKind(), "", errs)
	}
	if obj, err = write(req); err != nil {
		return nil, err
	}
	if err := validateAdmission(obj); err != nil {
		return nil, err
	}
	want := serviceaccount.Request{
		Bound: serviceaccount.Bound{
			Namespace: c.Namespace, Account: serviceaccount.Named{Name: c.Name, UID: account.UID},
		},
		Audiences: req.Spec.Audiences, ID: r.NewUID(), Now: now,
	}
	if err := r.bind(ctx, c, req, &want.Bound); err != nil {
		return nil, err
	}
	r.setLife(ctx, req, &want)
	token, err := r.Tokens.Issue(ctx, want)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("failed to generate token: %w", err))
	}
	if c.Audit != nil {
		c.Audit.Annotate("authentication.kubernetes.io/issued-credential-id", "JTI="+want.ID)
	}
	req.Status = authenticationv1.TokenRequestStatus{
		Token:               token,
		ExpirationTimestamp: metav1.NewTime(now.Add(time.Duration(*req.Spec.ExpirationSeconds) * time.Second).UTC()),
	}
	return write(req)
}

func otherUID(name string, requested types.UID, uid string) error {
	return apierrors.NewConflict(schema.GroupResource{Group: tokenRequest.Group, Resource: tokenRequest.Kind}, name,
		fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)", requested, uid))
}

// setLife sets the lifetime of a token: the requested one, up to the limit of this server. A token of a pod, which
// kubelets request with a known number of seconds, lives longer, and its late use causes a warning.
func (r Reviews) setLife(ctx context.Context, req *authenticationv1.TokenRequest, want *serviceaccount.Request) {
	longest := r.Tokens.MaxLife() // of an external signer
	limit := int64(r.MaxTokenLife.Seconds())
	if most := int64(longest.Seconds()); most > 0 && (limit == 0 || most < limit) {
		limit = most
	}
	if limit > 0 && *req.Spec.ExpirationSeconds > limit {
		request.Warn(ctx, fmt.Sprintf("requested expiration of %d seconds shortened to %d seconds",
			*req.Spec.ExpirationSeconds, limit))
		req.Spec.ExpirationSeconds = &limit
	}
	seconds := *req.Spec.ExpirationSeconds
	if want.Pod != nil && seconds == projectedSeconds && r.forThisServer(req.Spec.Audiences) {
		want.WarnAfter = want.Now.Unix() + seconds
		seconds = extendedSeconds
		if most := int64(longest.Seconds()); most > 0 {
			seconds = min(seconds, most)
		}
	}
	want.Life = time.Duration(seconds) * time.Second
}

func checkTokenRequest(req *authenticationv1.TokenRequest) (errs field.ErrorList) {
	path, seconds := field.NewPath("spec").Child("expirationSeconds"), *req.Spec.ExpirationSeconds
	if seconds < minTokenSeconds {
		errs = append(errs, field.Invalid(path, seconds, "may not specify a duration less than 10 minutes"))
	}
	if seconds > maxTokenSeconds {
		errs = append(errs, field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	attested, only := checkAttestations(&req.Spec)
	if only { // as in Kubernetes
		return attested
	}
	return append(errs, attested...)
}

// forThisServer reports whether a token is for this server alone.
func (r Reviews) forThisServer(audiences []string) bool {
	return !slices.ContainsFunc(audiences, func(a string) bool { return !slices.Contains(r.Tokens.Audiences(), a) })
}

// bind binds a token to an object: the token becomes invalid with it.
func (r Reviews) bind(
	ctx context.Context, c *verb.Call, req *authenticationv1.TokenRequest, to *serviceaccount.Bound,
) error {
	bound := req.Spec.BoundObjectRef
	if bound == nil {
		return nil
	}
	kind := schema.FromAPIVersionAndKind(bound.APIVersion, bound.Kind)
	var uid string
	webhooks, ofWebhooks := webhookKind(bound)
	switch {
	case ofWebhooks:
		var err error
		if uid, err = r.bindToWebhooks(ctx, webhooks, req, to); err != nil {
			return err
		}
	case kind.Group == "" && kind.Kind == "Pod":
		pod, err := r.find(ref.Pods, c.Namespace, bound.Name)
		if err != nil {
			return err
		}
		if account, _ := pod.Field("spec.serviceAccountName"); account != c.Name {
			return apierrors.NewBadRequest(
				fmt.Sprintf(
					"cannot bind token for serviceaccount %q to pod running with different serviceaccount name.",
					c.Name))
		}
		uid = pod.UID
		to.Pod = &serviceaccount.Named{Name: bound.Name, UID: uid}
		if name, _ := pod.Field("spec.nodeName"); name != "" {
			to.Node = &serviceaccount.Named{Name: name}
			if node, err := r.find(ref.Nodes, "", name); err == nil {
				to.Node.UID = node.UID
			}
		}
	case kind.Group == "" && kind.Kind == "Node":
		node, err := r.find(ref.Nodes, "", bound.Name)
		if err != nil {
			return err
		}
		uid = node.UID
		to.Node = &serviceaccount.Named{Name: bound.Name, UID: uid}
	case kind.Group == "" && kind.Kind == "Secret":
		secret, err := r.find(ref.Secrets, c.Namespace, bound.Name)
		if err != nil {
			return err
		}
		uid = secret.UID
		to.Secret = &serviceaccount.Named{Name: bound.Name, UID: uid}
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", kind.String()))
	}
	if bound.UID != "" && string(bound.UID) != uid {
		return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, bound.Name,
			fmt.Errorf(
				"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", bound.UID))
	}
	return nil
}

// find returns an object. A name that no object can have is a 400.
func (r Reviews) find(kind ref.Names, namespace, name string) (*watchcache.Entry, error) {
	if name == "" {
		return nil, apierrors.NewBadRequest("Name parameter required.")
	}
	if wrong := content.IsPathSegmentName(name); len(wrong) > 0 {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("Name parameter invalid: %q: %s", name, strings.Join(wrong, ";")))
	}
	e := r.View.Collection(kind.Prefix).Snapshot().Get(namespace, name)
	if e == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Resource}, name)
	}
	return e, nil
}

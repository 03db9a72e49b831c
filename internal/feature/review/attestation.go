package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/request"
)

const (
	// webhookTokenSeconds is the longest life of a token that is bound to a configuration of webhooks.
	webhookTokenSeconds = 10 * 60
	attestedGroups      = authenticationv1.AttestationAdmissionReviewAPIGroups
	// anyGroup is the attestation for reviews of all API groups.
	anyGroup = "*"
)

// webhookKind returns the names of the kind of webhook configurations that a token is to be bound to; ok is false if it
// is to be bound to anything else.
func webhookKind(bound *authenticationv1.BoundObjectReference) (kind ref.Names, ok bool) {
	if bound == nil || bound.APIVersion != admissionregistrationv1.SchemeGroupVersion.String() {
		return kind, false
	}
	switch bound.Kind {
	case ref.ValidatingWebhookConfigurations.Kind:
		return ref.ValidatingWebhookConfigurations, true
	case ref.MutatingWebhookConfigurations.Kind:
		return ref.MutatingWebhookConfigurations, true
	}
	return kind, false
}

// checkAttestations validates the audiences and the attestations of a request for a webhook's token. Requests for
// other tokens have no attestations.
func checkAttestations(spec *authenticationv1.TokenRequestSpec) (errs field.ErrorList, only bool) {
	path := field.NewPath("spec")
	attestations := path.Child("attestations")
	if _, ok := webhookKind(spec.BoundObjectRef); !ok {
		if len(spec.Attestations) > 0 {
			return field.ErrorList{field.Invalid(attestations, spec.Attestations,
				"attestations may only be specified with a webhook bound object reference")}, true
		}
		return nil, false
	}
	if len(spec.Audiences) != 1 {
		errs = append(errs, field.Invalid(path.Child("audiences"), spec.Audiences,
			"must be length 1 when bound to a webhook config"))
	}
	if len(spec.Attestations) != 1 {
		return append(errs, field.Invalid(attestations, spec.Attestations,
			"webhook bound requests require exactly one admissionReviewAPIGroups attestation")), false
	}
	for key, values := range spec.Attestations {
		at := attestations.Key(key)
		switch {
		case key != attestedGroups:
			errs = append(errs, field.NotSupported(at, key, []string{attestedGroups}))
		case len(values) != 1:
			errs = append(errs, field.Invalid(at, values, "must specify a single value"))
		default:
			errs = append(errs, checkAttestedGroup(values[0], at.Index(0))...)
		}
	}
	return errs, false
}

// checkAttestedGroup validates the attested API group. The core group has none: an empty name would mean all names in
// the check of permissions.
func checkAttestedGroup(group string, path *field.Path) (errs field.ErrorList) {
	switch group {
	case "":
		return field.ErrorList{field.Invalid(path, group, "may not be an empty string")}
	case anyGroup:
		return nil
	}
	for _, reason := range validation.IsDNS1123Subdomain(group) {
		errs = append(errs, field.Invalid(path, group, "must specify a valid API Group: "+reason))
	}
	return errs
}

// bindToWebhooks binds a token to a configuration of webhooks (KEP-6060): the service account may authenticate with it
// to a webhook as the sender of reviews for the attested API group. The account needs the permission to attest it, and
// one webhook of the configuration must have the audience and the group. It returns the uid of the configuration.
func (r Reviews) bindToWebhooks(ctx context.Context, kind ref.Names, req *authenticationv1.TokenRequest,
	to *serviceaccount.Bound) (uid string, err error) {
	spec := &req.Spec
	if !r.WebhookTokens {
		gvk := schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
		return "", apierrors.NewBadRequest(fmt.Sprintf(
			"cannot bind token to object of type %s (feature gate %s is disabled)", gvk.String(), serviceaccount.WebhookTokens))
	}
	if slices.ContainsFunc(spec.Audiences, func(a string) bool { return slices.Contains(r.Tokens.Audiences(), a) }) {
		return "", apierrors.NewBadRequest("api server audiences are invalid for webhook token requests")
	}
	group := spec.Attestations[attestedGroups][0]
	seconds := min(*spec.ExpirationSeconds, webhookTokenSeconds)
	spec.ExpirationSeconds = &seconds
	if err := authz.Require(ctx, r.Authorizer, serviceaccount.User(to.Namespace, to.Account), &request.Info{
		Verb: "attest", IsResource: true, APIPrefix: "apis", Group: authenticationv1.GroupName, Version: "*",
		Resource: attestedGroups, Name: group,
	}); err != nil {
		return "", err
	}
	if uid, err = r.matchingWebhooks(kind, req, group); err != nil {
		return "", apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, to.Account.Name,
			errors.New("token request denied"))
	}
	bound := &serviceaccount.Named{Name: spec.BoundObjectRef.Name, UID: uid}
	if kind == ref.MutatingWebhookConfigurations {
		to.MutatingWebhooks = bound
	} else {
		to.ValidatingWebhooks = bound
	}
	to.Attestations = map[string][]string{attestedGroups: {group}}
	return uid, nil
}

// matchingWebhooks returns the uid of the configuration in a request if one of its webhooks has the audience and a rule
// for the API group, or if the group is any.
func (r Reviews) matchingWebhooks(kind ref.Names, req *authenticationv1.TokenRequest, group string) (string, error) {
	e, err := r.find(kind, "", req.Spec.BoundObjectRef.Name)
	if err != nil {
		return "", err
	}
	// Both kinds have the same fields here.
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := json.Unmarshal(e.JSON(), &configuration); err != nil {
		return "", err
	}
	if deletion := configuration.DeletionTimestamp; deletion != nil && req.CreationTimestamp.After(deletion.Time) {
		return "", errors.New("it is being deleted")
	}
	if group == anyGroup {
		return e.UID, nil
	}
	for _, w := range configuration.Webhooks {
		if hasAudience(&w.ClientConfig, req.Spec.Audiences[0]) && slices.ContainsFunc(w.Rules,
			func(rule admissionregistrationv1.RuleWithOperations) bool {
				return slices.Contains(rule.APIGroups, anyGroup) || slices.Contains(rule.APIGroups, group)
			}) {
			return e.UID, nil
		}
	}
	return "", errors.New("no webhook matches")
}

// hasAudience reports whether a token with the audience is for the webhook: the audience is its URL, or the URL of its
// service.
func hasAudience(c *admissionregistrationv1.WebhookClientConfig, audience string) bool {
	if c.URL != nil && *c.URL == audience {
		return true
	}
	if c.Service == nil {
		return false
	}
	port, path := int32(443), "/"
	if c.Service.Port != nil {
		port = *c.Service.Port
	}
	if c.Service.Path != nil {
		path = "/" + strings.TrimPrefix(*c.Service.Path, "/")
	}
	return audience == fmt.Sprintf("https://%s.%s.svc:%d%s", c.Service.Name, c.Service.Namespace, port, path)
}

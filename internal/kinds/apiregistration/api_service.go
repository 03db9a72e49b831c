package apiregistration

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// apiregistrationV1 comes first of all groups, as in Kubernetes.
var apiregistrationV1 = rule.Group{Name: "apiregistration.k8s.io", Version: "v1", Priority: 20000, Rank: 100}

func apiServiceKind() rule.Kind {
	return rule.Of[apiregistrationv1.APIService](rule.Kind{
		Group: apiregistrationV1, Kind: "APIService", Plural: "apiservices", Prefix: "apiregistration.k8s.io/apiservices",
		Categories: []string{"api-extensions"}, ClusterScoped: true, Status: true,
		ResetFields: map[string]catalog.ResetFields{"status": rule.Except("spec", "metadata")},
		Strategy: &catalog.Strategy{
			ValidName:       func(name string, _ bool) []string { return content.IsPathSegmentName(name) },
			PrepareCreate:   prepareAPIServiceCreate,
			PrepareUpdate:   prepareAPIServiceUpdate,
			VisibleOnReturn: true,
			Cells:           rule.Printed(apiServiceCells),
		},
	})
}

// prepareAPIServiceCreate drops the client's status. The status of a local APIService is known.
func prepareAPIServiceCreate(obj object.Object, e catalog.Env) {
	obj["status"] = object.Object{}
	if object.Map(obj, "spec")["service"] == nil {
		obj["status"] = object.Object{"conditions": []any{LocalCondition(e.Now)}}
	}
}

// LocalCondition is the condition of an APIService without a service: this server serves it.
func LocalCondition(now time.Time) object.Object {
	return object.Object{
		"type": "Available", "status": "True", "reason": "Local",
		"message": "Local APIServices are always available", "lastTransitionTime": now.UTC().Format(time.RFC3339),
	}
}

// prepareAPIServiceUpdate keeps the fields that the endpoint does not change: the status, or all others.
func prepareAPIServiceUpdate(obj, old object.Object, subresource string, _ catalog.Env) {
	if subresource != "status" {
		keep(obj, old, "status")
		return
	}
	keep(obj, old, "spec")
	meta, was := object.Map(obj, "metadata"), object.Map(old, "metadata")
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		keep(meta, was, name)
	}
}

// keep copies a field from old to obj.
func keep(obj, old object.Object, name string) {
	if value, ok := old[name]; ok {
		obj[name] = value
		return
	}
	delete(obj, name)
}

func apiServiceCells(s *apiregistrationv1.APIService, e catalog.Env) []any {
	service := "Local"
	if s.Spec.Service != nil {
		service = s.Spec.Service.Namespace + "/" + s.Spec.Service.Name
	}
	available := string(apiregistrationv1.ConditionUnknown)
	for _, c := range s.Status.Conditions {
		if c.Type == apiregistrationv1.Available {
			available = string(c.Status)
			if c.Status != apiregistrationv1.ConditionTrue && c.Reason != "" {
				available += " (" + c.Reason + ")"
			}
			break
		}
	}
	return []any{s.Name, service, available, rule.Ago(s.CreationTimestamp, e)}
}

func validateAPIService(s *apiregistrationv1.APIService) field.ErrorList {
	var errs field.ErrorList
	path, spec := field.NewPath("spec"), s.Spec
	if want := spec.Version + "." + spec.Group; s.Name != want && len(content.IsPathSegmentName(s.Name)) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), s.Name,
			fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want)))
	}
	if spec.Group == "" && spec.Version != "v1" {
		errs = append(errs,
			field.Required(path.Child("group"), "only v1 may have an empty group and it better be legacy kube"))
	}
	if spec.Group != "" {
		for _, msg := range validation.IsDNS1123Subdomain(spec.Group) {
			errs = append(errs, field.Invalid(path.Child("group"), spec.Group, msg))
		}
	}
	for _, msg := range validation.IsDNS1035Label(spec.Version) {
		errs = append(errs, field.Invalid(path.Child("version"), spec.Version, msg))
	}
	if n := spec.GroupPriorityMinimum; n <= 0 || n > 20000 {
		errs = append(errs,
			field.Invalid(path.Child("groupPriorityMinimum"), n, "must be positive and less than 20000"))
	}
	if n := spec.VersionPriority; n <= 0 || n > 1000 {
		errs = append(errs, field.Invalid(path.Child("versionPriority"), n, "must be positive and less than 1000"))
	}
	return append(errs, validateService(&spec, path)...)
}

// validateService checks the reference to the API's server, and its CA bundle.
func validateService(spec *apiregistrationv1.APIServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	ca, insecure := path.Child("caBundle"), path.Child("insecureSkipTLSVerify")
	if spec.Service == nil {
		if len(spec.CABundle) > 0 {
			errs = append(errs, field.Invalid(ca, fmt.Sprintf("%d bytes", len(spec.CABundle)),
				"local APIServices may not have a caBundle"))
		}
		if spec.InsecureSkipTLSVerify {
			errs = append(errs, field.Invalid(insecure, true, "local APIServices may not have insecureSkipTLSVerify"))
		}
		return errs
	}
	at := path.Child("service")
	if spec.Service.Namespace == "" {
		errs = append(errs, field.Required(at.Child("namespace"), ""))
	}
	if spec.Service.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	if port := spec.Service.Port; port != nil {
		if wrong := validation.IsValidPortNum(int(*port)); wrong != nil {
			errs = append(errs,
				field.Invalid(at.Child("port"), *port, "port is not valid: "+strings.Join(wrong, ", ")))
		}
	}
	if spec.InsecureSkipTLSVerify && len(spec.CABundle) > 0 {
		errs = append(errs, field.Invalid(insecure, true, "may not be true if caBundle is present"))
	}
	return errs
}

func validateAPIServiceStatus(s *apiregistrationv1.APIService) field.ErrorList {
	known := []apiregistrationv1.ConditionStatus{
		apiregistrationv1.ConditionTrue, apiregistrationv1.ConditionFalse, apiregistrationv1.ConditionUnknown,
	}
	var errs field.ErrorList
	for i, c := range s.Status.Conditions {
		if c.Status != known[0] && c.Status != known[1] && c.Status != known[2] {
			path := field.NewPath("status", "conditions").Index(i).Child("status")
			errs = append(errs, field.NotSupported(path, c.Status, known))
		}
	}
	return errs
}

// apiServiceFunctions are the functions that api_service.txt names.
func apiServiceFunctions() rule.Functions {
	return rule.Functions{
		"apiService":       rule.Typed(validateAPIService, nil),
		"apiServiceStatus": rule.Typed(validateAPIServiceStatus, nil),
	}
}

package cel

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	upcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

func TestProto(t *testing.T) {
	files, _ := filepath.Glob("/tmp/upjet/*.yaml")
	fmt.Println(environment.DefaultCompatibilityVersion())
	t0 := time.Now()
	es := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	fmt.Println("base", time.Since(t0))
	base := es.NewExpressionsEnv()
	var tUp, tDecl, tAssign, tParse, tChkEnv, tCheck, tProg, tCost time.Duration
	n, rules := 0, 0
	t0 = time.Now()
	bchk, err := checker.NewEnv(base.Container, base.CELTypeProvider(), checker.CrossTypeNumericComparisons(true))
	if err != nil {
		t.Fatal(err)
	}
	if err := bchk.AddIdents(base.Variables()...); err != nil {
		t.Fatal(err)
	}
	for _, f := range base.Functions() {
		if f.IsDeclarationDisabled() {
			continue
		}
		if err := bchk.AddFunctions(f); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("bchk", time.Since(t0), len(base.Functions()), len(base.Variables()))
	for i := 0; i < len(files); i += 3 {
		b, _ := os.ReadFile(files[i])
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(b, &crd); err != nil {
			t.Fatal(err)
		}
		had := false
		for _, v := range crd.Spec.Versions {
			var in apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &in, nil); err != nil {
				t.Fatal(err)
			}
			ss, err := structuralschema.NewStructural(&in)
			if err != nil {
				t.Fatal(err)
			}
			var walk func(s *structuralschema.Structural)
			walk = func(s *structuralschema.Structural) {
				if len(s.XValidations) > 0 {
					had = true
					rules += len(s.XValidations)
					t0 := time.Now()
					dt := model.SchemaDeclType(s, false)
					tDecl += time.Since(t0)
					t0 = time.Now()
					if _, err := upcel.Compile(s, dt, celconfig.PerCallLimit, es, upcel.NewExpressionsEnvLoader()); err != nil {
						t.Fatal(err)
					}
					tUp += time.Since(t0)
					t0 = time.Now()
					st := dt.MaybeAssignTypeName("selfType123")
					pr := apiservercel.NewDeclTypeProvider(st)
					pr.SetRecognizeKeywordAsFieldName(true)
					pr, err = pr.WithTypeProvider(base.CELTypeProvider())
					tAssign += time.Since(t0)
					t0 = time.Now()
					chk, err := checker.NewEnv(base.Container, pr, checker.ValidatedDeclarations(bchk), checker.CrossTypeNumericComparisons(true))
					if err != nil {
						t.Fatal(err)
					}
					chk.AddIdents(decls.NewVariable("self", st.CelType()), decls.NewVariable("oldSelf", st.CelType()))
					tChkEnv += time.Since(t0)
					for _, r := range s.XValidations {
						t0 = time.Now()
						a, _ := base.Parse(r.Rule)
						tParse += time.Since(t0)
						t0 = time.Now()
						checked, errs := checker.Check(a.NativeRep(), common.NewTextSource(r.Rule), chk)
						if len(errs.GetErrors()) > 0 {
							t.Fatal(errs.ToDisplayString())
						}
						tCheck += time.Since(t0)
						*a.NativeRep() = *checked
						t0 = time.Now()
						if _, err := base.EstimateCost(a, nil2{}); err != nil {
							t.Fatal(err)
						}
						tCost += time.Since(t0)
						t0 = time.Now()
						if _, err := base.Program(a); err != nil {
							t.Fatal(err)
						}
						tProg += time.Since(t0)
					}
				}
				for _, p := range s.Properties {
					walk(&p)
				}
				if s.Items != nil {
					walk(s.Items)
				}
				if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
					walk(s.AdditionalProperties.Structural)
				}
			}
			walk(ss)
		}
		if had {
			n++
		}
	}
	d := func(x time.Duration) time.Duration { return x / time.Duration(n) }
	fmt.Println(n, "crds", rules, "rules; per CRD: upstream compile", d(tUp), "decl", d(tDecl), "assign+provider", d(tAssign), "chkenv", d(tChkEnv), "parse", d(tParse), "check", d(tCheck), "cost", d(tCost), "program", d(tProg))
}

type nil2 struct{}

func (nil2) EstimateSize(checker.AstNode) *checker.SizeEstimate { return nil }
func (nil2) EstimateCallCost(function, overloadID string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	return nil
}

//! The kinds of models, by the field of `Model` that holds each.

/// The field of `Model` that holds an ML Program.
pub const ML_PROGRAM: u32 = 502;

const KINDS: [(u32, &str); 37] = [
    (200, "pipelineClassifier"),
    (201, "pipelineRegressor"),
    (202, "pipeline"),
    (300, "glmRegressor"),
    (301, "supportVectorRegressor"),
    (302, "treeEnsembleRegressor"),
    (303, "neuralNetworkRegressor"),
    (304, "bayesianProbitRegressor"),
    (400, "glmClassifier"),
    (401, "supportVectorClassifier"),
    (402, "treeEnsembleClassifier"),
    (403, "neuralNetworkClassifier"),
    (404, "kNearestNeighborsClassifier"),
    (500, "neuralNetwork"),
    (501, "itemSimilarityRecommender"),
    (ML_PROGRAM, "mlProgram"),
    (555, "customModel"),
    (556, "linkedModel"),
    (560, "classConfidenceThresholding"),
    (600, "oneHotEncoder"),
    (601, "imputer"),
    (602, "featureVectorizer"),
    (603, "dictVectorizer"),
    (604, "scaler"),
    (606, "categoricalMapping"),
    (607, "normalizer"),
    (609, "arrayFeatureExtractor"),
    (610, "nonMaximumSuppression"),
    (900, "identity"),
    (2000, "textClassifier"),
    (2001, "wordTagger"),
    (2002, "visionFeaturePrint"),
    (2003, "soundAnalysisPreprocessing"),
    (2004, "gazetteer"),
    (2005, "wordEmbedding"),
    (2006, "audioFeaturePrint"),
    (3000, "serializedModel"),
];

/// The schema's name of the kind of model that field `number` of `Model` holds; `None` if that field is no kind.
#[must_use]
pub fn kind_of_field(number: u32) -> Option<&'static str> {
    KINDS.iter().find(|(field, _)| *field == number).map(|(_, name)| *name)
}

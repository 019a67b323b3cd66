use std::fs;

use super::*;
use crate::splits::BadRowRule;
use crate::test_files::read_as;

/// Reads `content` as a file of this name, next to a file of answers.
fn try_read(name: &str, content: &str, answers: &str, format: &str) -> Result<Vec<Choice>, String> {
    read_as(name, content, |path| {
        fs::write(path.with_file_name("answers.lst"), answers).unwrap();
        read(path, &toml::from_str(format).unwrap(), &mut Shots::none(), &mut BadRows::default())
    })
}

fn choices(content: &str, format: &str) -> Vec<Choice> {
    try_read("a", content, "", format).unwrap()
}

fn fault(content: &str, format: &str) -> String {
    try_read("a", content, "", format).unwrap_err()
}

fn choice(context: &str, choices: &[&str], answer: usize) -> Choice {
    let choices = choices.iter().map(|&choice| choice.to_owned()).collect();
    Choice { context: context.to_owned(), choices, answer, ..Choice::default() }
}

const BLIMP: &str =
    "kind = 'jsonl'\nchoices = ['sentence_good', 'sentence_bad']\nanswer = { always = 1 }\ngroup = 'UID'";
const PIQA: &str = "kind = 'jsonl'\ncontext = \"Question: {goal}\\nAnswer:\"\nchoices = ['sol1', 'sol2']\n\
                    answer = { file = 'answers.lst', first = 0 }";
const HELLASWAG: &str = "kind = 'jsonl'\ncontext = '{activity_label}: {ctx_a} {ctx_b|capitalize}'\n\
                         choices = 'endings'\nanswer = { field = 'label', first = 0 }\nwikihow = true";
const ARC: &str = "kind = 'jsonl'\ncontext = \"Question: {question}\\nAnswer:\"\nchoices = 'choices.text'\n\
                   answer = { field = 'answerKey', within = 'choices.label' }";
const TABLE: &str = "kind = 'csv'\nchoices = ['a', 'b']\nanswer = { field = 'n', first = 1 }";

#[test]
fn a_minimal_pair_has_no_context() {
    let line = r#"{"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps.", "UID": "agreement"}"#;
    let expected =
        Choice { group: Some("agreement".to_owned()), ..choice("", &["Cats sleep.", "Cats sleeps."], 0) };
    assert_eq!(choices(line, BLIMP), std::slice::from_ref(&expected));
    let part = |text: &str, characters| Continuation {
        context: String::new(),
        continuation: text.to_owned(),
        characters,
    };
    assert_eq!(expected.parts(), [part("Cats sleep.", 11), part("Cats sleeps.", 12)]);
}

#[test]
fn answers_may_be_in_a_separate_file() {
    let line = |goal: &str| format!("{{\"goal\": \"{goal}\", \"sol1\": \"a é\", \"sol2\": \"b\"}}\n");
    let content = line("How?") + "\n" + &line("Why?");
    let read = |answers| try_read("valid.jsonl", &content, answers, PIQA);
    let expected = [
        choice("Question: How?\nAnswer:", &["a é", "b"], 1),
        choice("Question: Why?\nAnswer:", &["a é", "b"], 0),
    ];
    assert_eq!(read("1\n0\n").unwrap(), expected);
    let part = Continuation {
        context: "Question: How?\nAnswer:".to_owned(),
        continuation: " a é".to_owned(),
        characters: 3,
    };
    assert_eq!(expected[0].parts()[0], part);
    assert_eq!(
        read("1\n").unwrap_err(),
        "`valid.jsonl` has 2 lines, but `answers.lst` has 1: parallel files must have equal numbers of lines"
    );
    assert_eq!(read("1\nx\n").unwrap_err(), "`answers.lst`, line 2: `x` is not a choice number");
    let beyond = "`valid.jsonl`, line 3: its answer is `2`, expected a number from 0 to 1";
    assert_eq!(read("1\n2\n").unwrap_err(), beyond);
    // the answer of a skipped row is skipped too
    let mut bad = BadRows::new(BadRowRule::Skip);
    let left = read_as("q", content.replace("\"How?\"", "[1.5]"), |path| {
        fs::write(path.with_file_name("answers.lst"), "1\n0\n").unwrap();
        super::read(path, &toml::from_str(PIQA).unwrap(), &mut Shots::none(), &mut bad)
    });
    assert_eq!((&left.unwrap()[..], bad.skipped), (&expected[1..], 1));
}

/// By hand from `preprocess` and `_process_doc` of lm-evaluation-harness: stripped, ` [title]` becomes `. `, other marks
/// are removed, and then each pair of spaces becomes one.
#[test]
fn marks_are_removed_from_hellaswag() {
    let line = r#"{"activity_label": "Tea", "ctx_a": "[header] How to brew [title] Boil.", "ctx_b": "the CUP",
        "endings": [" is [step] hot.", "[substeps] melts."], "label": 1}"#;
    let expected = choice("Tea: How to brew. Boil. The cup", &["is hot.", " melts."], 1);
    assert_eq!(choices(&line.replace('\n', ""), HELLASWAG), [expected]);
    let silent = HELLASWAG.replace("wikihow = true", "");
    assert_eq!(choices(&line.replace('\n', ""), &silent)[0].choices[1], "[substeps] melts.");
}

#[test]
fn lists_may_be_nested_and_answers_named() {
    let line = |key: &str| {
        format!(
            r#"{{"question": "?", "choices": {{"text": ["x", "y", "z"], "label": ["A", "B", "3"]}}, "answerKey": {key}}}"#
        )
    };
    let content = [line("\"B\""), line("3")].join("\n");
    let answers: Vec<usize> = choices(&content, ARC).into_iter().map(|choice| choice.answer).collect();
    assert_eq!(answers, [1, 2]);
    assert_eq!(fault(&line("\"D\""), ARC), "`a`, line 1: its answer is `D`, expected one of `A`, `B`, `3`");
    let twice = line("\"A\"").replace("\"B\"", "\"A\"");
    assert!(fault(&twice, ARC).ends_with("its answer is `A`, expected one of `A`, `A`, `3`"));
    let fewer = line("\"A\"").replace(", \"3\"", "");
    assert_eq!(fault(&fewer, ARC), "`a`, line 1: it has 3 choices, but 2 names of choices");

    // As the authors of ARC distribute it: a list of objects.
    let objects = r#"{"question": {"stem": "?", "choices": [{"text": "x", "label": "A"}, {"text": "y", "label": "B"}]}, "answerKey": "B"}"#;
    let format = ARC.replace("choices.", "question.choices.").replace("{question}", "{question.stem}");
    assert_eq!(choices(objects, &format), [choice("Question: ?\nAnswer:", &["x", "y"], 1)]);
}

#[test]
fn tables_have_choices_in_columns() {
    let content = "n,a,b,c\n1,\"x, y\",z,k\n2,p,q,k\n";
    let expected = [choice("", &["x, y", "z"], 0), choice("", &["p", "q"], 1)];
    assert_eq!(choices(content, TABLE), expected);
    let tsv = "kind = 'tsv'\nheader = false\ncontext = '{1}!'\nchoices = ['2', '3']\nanswer = { always = 2 }\ngroup = '1'";
    let expected = Choice { group: Some("k".to_owned()), ..choice("k!", &["\"x", "y"], 1) };
    assert_eq!(choices("k\t\"x\ty\n", tsv), [expected]);
}

#[test]
fn white_space_at_the_end_of_a_context_moves_to_the_continuation() {
    for (context, kept, continuation) in [
        ("Q:", "Q:", " yes"),
        ("Q: ", "Q:", "  yes"),
        ("Q:\n\n", "Q:", "\n\n yes"),
        (" Q", " Q", " yes"),
        (" ", "", "  yes"),
        ("", "", "yes"),
    ] {
        let part = &choice(context, &["yes", "no"], 0).parts()[0];
        assert_eq!((part.context.as_str(), part.continuation.as_str()), (kept, continuation), "{context:?}");
        assert_eq!(part.characters, 3);
    }
}

#[test]
fn answers_in_another_form_are_refused() {
    for wrong in ["answer = { always = 1, first = 0 }", "answer = 'label'", ""] {
        let format = format!("kind = 'jsonl'\nchoices = 'a'\n{wrong}");
        let read = toml::from_str::<ChoiceFormat>(&format).map_err(|error| error.message().to_owned());
        let fault = read.and_then(|format| format.validate().map_err(|error| error.to_string())).unwrap_err();
        assert!(fault.contains("answer"), "{wrong}: {fault}");
    }
}

/// BoolQ: choices that are words of the task, and answers from a field that is true or false; a literal may begin with a space.
#[test]
fn choices_may_be_literal_and_answers_true_or_false() {
    let content = "{\"q\": \"is it\", \"answer\": true}\n{\"q\": \"so\", \"answer\": false}\n";
    for literals in ["{ text = ' no' }, { text = ' yes' }", "{ text = 'no' }, { text = 'yes' }"] {
        let format = format!(
            "kind = 'jsonl'\ncontext = '{{q}}?'\nchoices = [{literals}]\nanswer = {{ field = 'answer', first = 0 }}"
        );
        let found = choices(content, &format);
        assert_eq!(found, [choice("is it?", &["no", "yes"], 1), choice("so?", &["no", "yes"], 0)]);
        assert_eq!(found[0].parts()[1].continuation, " yes");
    }
    let format = "kind = 'jsonl'\nchoices = [' no', ' yes']\nanswer = { field = 'answer', first = 0 }";
    let expected = "no field ` no`: the row has `answer`, `q`; a literal choice is { text = \" no\" }";
    assert!(fault(content, format).ends_with(expected), "{}", fault(content, format));
    let from_one = "kind = 'jsonl'\nchoices = [{ text = 'no' }, { text = 'yes' }]\nanswer = { field = 'answer', first = 1 }";
    let expected = "its answer is `true`, expected a number from 1 to 2";
    assert!(fault(content, from_one).ends_with(expected), "{}", fault(content, from_one));
}

/// WinoGrande: each choice has its own context, and the same ending.
#[test]
fn each_choice_may_have_its_own_context() {
    let content = "{\"one\": \"The cat\", \"two\": \"The dog \", \"end\": \"barks.\", \"answer\": \"2\"}\n";
    let format = "kind = 'jsonl'\ncontext = 'Now: '\ncontexts = ['one', 'two']\nchoices = ['end', 'end']\n\
                  answer = { field = 'answer', first = 1 }";
    let [question] = &choices(content, format)[..] else { panic!("one question") };
    let parts = question.parts();
    let shown = |place: usize| (parts[place].context.as_str(), parts[place].continuation.as_str());
    assert_eq!((shown(0), shown(1)), (("Now: The cat", " barks."), ("Now: The dog", "  barks.")));
    assert_eq!((question.answer, question.answered().as_str()), (1, "Now: The dog  barks."));
    let fewer = format.replace("contexts = ['one', 'two']", "contexts = ['one']");
    assert!(fault(content, &fewer).contains("must have as many entries as `choices`, which has 2"));
}

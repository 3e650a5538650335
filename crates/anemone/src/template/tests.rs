use serde_json::json;

use super::*;
use crate::testing::fixture;

fn render_with(source: &str, variables: serde_json::Value) -> Result<String> {
    let variables = variables.as_object().expect("an object").clone();
    ChatTemplate::new(source)?.render(&[], &Rendering { variables: Some(&variables), ..Rendering::default() })
}

fn render(source: &str) -> Result<String> {
    render_with(source, json!({}))
}

#[test]
fn every_reference_chat_renders_as_the_reference() {
    const SMOLLM2: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
        {{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}\
        {% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}\
        {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    let text = fixture("smollm2/text.json");
    let text: serde_json::Value = serde_json::from_slice(&text).expect("the fixture is JSON");
    let template = ChatTemplate::new(SMOLLM2).unwrap();
    let chats = text["templates"].as_array().expect("a list of chats");
    assert!(chats.len() >= 12);
    for chat in chats {
        let messages: Vec<Message> = serde_json::from_value(chat["messages"].clone()).unwrap();
        let add_generation_prompt = chat["add_generation_prompt"].as_bool().unwrap();
        let rendered =
            template.render(&messages, &Rendering { add_generation_prompt, ..Rendering::default() }).unwrap();
        assert_eq!(rendered, chat["rendered"].as_str().unwrap());
    }
}

#[test]
fn blocks_are_trimmed_as_transformers_does() {
    let source = "start\n  {% if true %}\n  kept\n  {% endif %}\nend\n";
    assert_eq!(render(source).unwrap(), "start\n  kept\nend");
}

#[test]
fn python_methods_namespaces_slices_and_loop_controls() {
    let source = "{% set ns = namespace(last=0) %}{% for m in list[::-1] %}{% if m == 'stop' %}{% break %}{% endif %}\
        {% set ns.last = m.strip('x').upper() %}{{ ns.last }}{% endfor %}|{{ ns.last }}|\
        {{ map.get('a', 1) }}{{ map.get('z', 1) }}|{% for k, v in map.items() %}{{ k }}{{ v }}{% endfor %}|\
        {{ 'a</think>b'.split('</think>')[-1].lstrip() }}|{{ none }}{{ true }}|{{ missing }}|{{ list[0:2] | length }}";
    let text = render_with(source, json!({"list": ["stop", "xbx", "xcx"], "map": {"b": 2, "a": 3}})).unwrap();
    assert_eq!(text, "CB|B|31|b2a3|b|NoneTrue||2");
}

#[test]
fn tojson_is_pythons() {
    let data = json!({"value": {"b": "<é>&'\"\n", "a": [1, 2.5, true, null, 1e20], "e": {}, "l": []}});
    let plain = r#"{"b": "<é>&'\"\n", "a": [1, 2.5, true, null, 1e+20], "e": {}, "l": []}"#;
    assert_eq!(render_with("{{ value | tojson }}", data.clone()).unwrap(), plain);
    assert_eq!(
        render_with("{{ value | tojson(ensure_ascii=True, separators=(',', ':'), sort_keys=true) }}", data).unwrap(),
        r#"{"a":[1,2.5,true,null,1e+20],"b":"<\u00e9>&'\"\n","e":{},"l":[]}"#
    );
    let data = json!({"value": {"a": [1, {"b": "🌊"}], "c": []}});
    assert_eq!(
        render_with("{{ value | tojson(indent=4) }}", data.clone()).unwrap(),
        "{\n    \"a\": [\n        1,\n        {\n            \"b\": \"🌊\"\n        }\n    ],\n    \"c\": []\n}"
    );
    assert_eq!(
        render_with("{{ value.a[1] | tojson(ensure_ascii=true) }}", data).unwrap(),
        "{\"b\": \"\\ud83c\\udf0a\"}"
    );
    assert!(render("{{ missing | tojson }}").is_err());
}

#[test]
fn exceptions_carry_the_templates_words() {
    let error = render("{{ raise_exception('roles must alternate') }}").unwrap_err();
    assert!(matches!(error, Error::TemplateRefused { ref reason } if reason == "roles must alternate"), "{error}");
}

#[test]
fn time_is_that_of_the_rendering() {
    let template = ChatTemplate::new("Today is {{ strftime_now('%d %B %Y') }}.").unwrap();
    let now = UNIX_EPOCH + std::time::Duration::from_secs(86_400 * 59);
    let text = template.render(&[], &Rendering { now, ..Rendering::default() }).unwrap();
    assert_eq!(text, "Today is 01 March 1970.");
}

#[test]
fn generation_blocks_render_their_body() {
    let source = "{% for m in messages %}\n{%- generation -%} {{ m.content }} {%- endgeneration -%}\n{% endfor %}";
    let template = ChatTemplate::new(source).unwrap();
    let text = template.render(&[Message::user("a"), Message::user("b")], &Rendering::default()).unwrap();
    assert_eq!(text, "ab");
}

#[test]
fn special_tokens_and_named_templates_come_from_the_configuration() {
    let config = json!({
        "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false},
        "chat_template": [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "{{ bos_token }}"}],
    });
    let messages = [Message::user("x")];
    let rendering = Rendering::default();
    assert_eq!(ChatTemplate::from_config(&config, None).unwrap().render(&messages, &rendering).unwrap(), "<s>");
    let own = ChatTemplate::from_config(&config, Some("{{ eos_token }}{{ messages[0].content }}")).unwrap();
    assert_eq!(own.render(&messages, &rendering).unwrap(), "</s>x");
    assert!(matches!(ChatTemplate::from_config(&json!({}), None), Err(Error::Template { .. })));
}

#[test]
fn tools_are_handed_over() {
    let template = ChatTemplate::new("{% if tools %}{{ tools[0].function.name }}{% else %}-{% endif %}").unwrap();
    let tools = json!([{"type": "function", "function": {"name": "weather"}}]);
    let text = template.render(&[], &Rendering { tools: Some(&tools), ..Rendering::default() }).unwrap();
    assert_eq!(text, "weather");
    assert_eq!(template.render(&[], &Rendering::default()).unwrap(), "-");
}

/// The habits of the template of DeepSeek's R1 and of what was distilled from it: a system message that is gathered first, text
/// behind `</think>` alone of earlier answers, the thinking opened in the prompt.
#[test]
fn reasoning_is_opened_in_the_prompt_and_left_out_of_earlier_answers() {
    let source = "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}\
        {% set ns = namespace(system='', is_tool=false) %}{%- for m in messages %}{%- if m['role'] == 'system' %}\
        {% set ns.system = m['content'] %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system }}\
        {%- for m in messages %}{%- if m['role'] == 'user' %}{{ '<｜User｜>' + m['content'] }}{%- endif %}\
        {%- if m['role'] == 'assistant' and m['content'] is not none %}{% set content = m['content'] %}\
        {% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}\
        {{ '<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>' }}{%- endif %}{%- endfor %}\
        {% if add_generation_prompt and not ns.is_tool %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}";
    let template = ChatTemplate::new(source).unwrap();
    let messages: Vec<Message> = serde_json::from_value(json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "2 + 2?" },
        { "role": "assistant", "content": "<think>\nTwo and two.\n</think>\n\n4" },
        { "role": "user", "content": "And 3?" },
    ]))
    .unwrap();
    let bos = json!({ "bos_token": "<｜begin▁of▁sentence｜>" });
    let rendering = Rendering { variables: bos.as_object(), ..Rendering::default() };
    assert_eq!(
        template.render(&messages, &rendering).unwrap(),
        "<｜begin▁of▁sentence｜>Be brief.<｜User｜>2 + 2?<｜Assistant｜>\n\n4<｜end▁of▁sentence｜><｜User｜>And 3?\
         <｜Assistant｜><think>\n"
    );
}

#[test]
fn broken_and_hostile_templates_end_in_an_error() {
    assert!(matches!(ChatTemplate::new("{% for %}"), Err(Error::Template { .. })));
    assert!(matches!(ChatTemplate::new("{{ x }"), Err(Error::Template { .. })));
    assert!(matches!(ChatTemplate::new(&"x".repeat(SOURCE_LIMIT + 1)), Err(Error::TooLarge { .. })));
    assert!(ChatTemplate::new(&"(".repeat(50_000)).is_ok());
    assert!(ChatTemplate::new(&format!("{{{{ {} }}}}", "(".repeat(50_000))).is_err());
    let busy = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    assert!(matches!(render(busy), Err(Error::Template { .. })));
    let bomb = "{% set ns = namespace(s='xxxxxxxx') %}{% for a in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}";
    assert!(matches!(render(bomb), Err(Error::Template { .. })));
    let endless = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
    assert!(render(endless).is_err());
}

#[test]
fn depth_ends_in_an_error_and_not_the_process() {
    for unit in ["-", "not ", "1+", "1 if 1 else ", "'a'~"] {
        let source = format!("{{{{ {}1 }}}}", unit.repeat(60_000 / unit.len()));
        // Whether it is valid is not the point.
        drop(ChatTemplate::new(&source).map(|template| template.render(&[], &Rendering::default())));
    }
    for unit in [".b", "[0]", "()", "|trim"] {
        let source = format!("{{{{ a{} }}}}", unit.repeat(60_000 / unit.len()));
        drop(ChatTemplate::new(&source).map(|template| template.render(&[], &Rendering::default())));
    }
    let many = format!("{}ns.x{}", "[".repeat(60), "]".repeat(60));
    let nest =
        format!("{{% set ns = namespace(x=[]) %}}{{% for i in range(2500) %}}{{% set ns.x = {many} %}}{{% endfor %}}");
    assert_eq!(render(&nest).unwrap(), "", "values are 150,000 deep");
    for then in ["{{ ns.x }}", "{{ ns.x == [] }}", "{{ ns.x | tojson }}"] {
        drop(render(&format!("{nest}{then}")));
    }
}
